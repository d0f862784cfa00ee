"""Finds out which ports of a host accept connections. It needs nothing but Python's own library."""

import csv
import json
import os
import socket
import sys

HOST_UNKNOWN = 75


def event(**fields):
    """Reports progress, or a line of the log with a level and data."""
    with open(os.environ["HOLDFAST_EVENTS"], "a") as events:
        events.write(json.dumps(fields) + "\n")


def is_open(address, port):
    try:
        with socket.create_connection((address, port), timeout=2):
            return True
    except OSError:
        return False


with open(os.environ["HOLDFAST_PAYLOAD"]) as file:
    payload = json.load(file)
host, ports = payload["host"], payload.get("ports", [22, 80, 443])

try:
    address = socket.getaddrinfo(host, None)[0][4][0]
except OSError as error:
    print(f"{host}: {error}", file=sys.stderr)
    sys.exit(HOST_UNKNOWN)

result = {"open": [], "closed": []}
for number, port in enumerate(ports, start=1):
    state = "open" if is_open(address, port) else "closed"
    result[state].append(port)
    print(f"{host}:{port} is {state}")
    event(progress=round(100 * number / len(ports)), message=f"port {port}")
if not result["open"]:
    event(log={"level": "warn", "message": "No port is open", "data": {"address": address}})

with open(os.path.join(os.environ["HOLDFAST_ARTIFACTS"], "ports.csv"), "w", newline="") as file:
    table = csv.writer(file)
    table.writerow(["port", "state"])
    table.writerows([port, state] for state in result for port in result[state])

with open(os.environ["HOLDFAST_RESULT"], "w") as file:
    json.dump(result, file)
