#!/usr/bin/env python3
"""A dynamic inventory: the active devices that the token in INVENTORY_TOKEN may read.

Groups are site_<name> and role_<name>. A host has its primary address as ansible_host.
"""

import json
import os
import re
import sys
import urllib.parse
import urllib.request


def pages(path: str):
    cursor = None
    while True:
        query = {"limit": "200", "status": "active", "include": "labels"}
        if cursor:
            query["cursor"] = cursor
        request = urllib.request.Request(
            f"{os.environ['INVENTORY_URL']}{path}?{urllib.parse.urlencode(query)}",
            headers={"Authorization": f"Bearer {os.environ['INVENTORY_TOKEN']}"},
        )
        with urllib.request.urlopen(request, timeout=30) as response:
            page = json.load(response)
        yield page["items"], page["included"]["labels"]
        cursor = page["nextCursor"]
        if cursor is None:
            return


def group_name(kind: str, name: str) -> str:
    return re.sub(r"[^a-z0-9_]", "_", f"{kind}_{name}".lower())


def inventory() -> dict:
    groups: dict = {}
    hostvars: dict = {}
    for devices, labels in pages("/api/inventory/devices"):
        for device in devices:
            host = {"holdfast_id": device["id"]}
            address = device["primaryIp4Id"] or device["primaryIp6Id"]
            if address:
                host["ansible_host"] = labels["ip-addresses"][address].split("/")[0]
            hostvars[device["name"]] = host
            for kind, resource, reference in [
                ("site", "sites", device["siteId"]),
                ("role", "device-roles", device["roleId"]),
            ]:
                if reference:
                    group = groups.setdefault(
                        group_name(kind, labels[resource][reference]), {"hosts": []}
                    )
                    group["hosts"].append(device["name"])
    return {**groups, "_meta": {"hostvars": hostvars}}


if __name__ == "__main__":
    json.dump({} if "--host" in sys.argv else inventory(), sys.stdout)
