#!/usr/bin/env python3
"""A dynamic inventory: the active devices that the token in INVENTORY_TOKEN may read.

Groups are site_<name> and role_<name>. A host has its primary address as ansible_host. Names that
several devices, sites or roles share end with the id.
"""

import collections
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


def host_names(devices: list) -> dict:
    """The name of each device as a host. Names are unique within a site: equal ones end with the id."""
    count = collections.Counter(device["name"] for device in devices)
    return {
        device["id"]: device["name"]
        if count[device["name"]] == 1
        else f"{device['name']}.{device['id']}"
        for device in devices
    }


def group_names(kind: str, labels: dict) -> dict:
    """The group of each site or role. Names are unique within a tenant: equal ones end with the id."""
    names = {id: group_name(kind, name) for id, name in labels.items()}
    count = collections.Counter(names.values())
    return {
        id: name if count[name] == 1 else f"{name}_{id}" for id, name in names.items()
    }


def inventory() -> dict:
    devices: list = []
    labels: dict = collections.defaultdict(dict)
    for items, more in pages("/api/inventory/devices"):
        devices += items
        for resource, names in more.items():
            labels[resource].update(names)
    hosts = host_names(devices)
    groups: dict = collections.defaultdict(lambda: {"hosts": []})
    group_of = {
        **group_names("site", labels["sites"]),
        **group_names("role", labels["device-roles"]),
    }
    hostvars: dict = {}
    for device in devices:
        host = hosts[device["id"]]
        hostvars[host] = {"holdfast_id": device["id"], "holdfast_name": device["name"]}
        # What the token may not read has no label.
        address = device["primaryIp4Id"] or device["primaryIp6Id"]
        if address in labels["ip-addresses"]:
            hostvars[host]["ansible_host"] = labels["ip-addresses"][address].split("/")[
                0
            ]
        for reference in (device["siteId"], device["roleId"]):
            if reference in group_of:
                groups[group_of[reference]]["hosts"].append(host)
    return {**groups, "_meta": {"hostvars": hostvars}}


if __name__ == "__main__":
    json.dump({} if "--host" in sys.argv else inventory(), sys.stdout)
