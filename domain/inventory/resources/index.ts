import type { ResourceName } from '../names.ts';
import type { Resource } from '../resource.ts';
import {
  customFields,
  deviceRoles,
  deviceTypes,
  manufacturers,
  platforms,
  tags,
} from './catalogues.ts';
import { cables, devices, interfaces } from './devices.ts';
import { ipAddresses, ipRanges, prefixes, vlanGroups, vlans, vrfs } from './networks.ts';
import { locations, racks, regions, sites, tenants } from './facilities.ts';

/** Every resource of the inventory. */
export const RESOURCES: Readonly<Record<ResourceName, Resource>> = {
  tenants,
  regions,
  sites,
  locations,
  racks,
  manufacturers,
  'device-types': deviceTypes,
  'device-roles': deviceRoles,
  platforms,
  devices,
  interfaces,
  cables,
  vrfs,
  'vlan-groups': vlanGroups,
  vlans,
  prefixes,
  'ip-ranges': ipRanges,
  'ip-addresses': ipAddresses,
  tags,
  'custom-fields': customFields,
};

/** Who refers to records of a resource, and by which field. */
export const REFERRERS: Readonly<
  Record<ResourceName, readonly { resource: ResourceName; field: string }[]>
> = Object.fromEntries(
  Object.keys(RESOURCES).map((name) => [
    name,
    Object.values(RESOURCES).flatMap((other) =>
      Object.entries(other.fields)
        .filter(([, { reference: to, derived }]) => to === name && !derived)
        .map(([field]) => ({ resource: other.name, field })),
    ),
  ]),
) as Record<ResourceName, { resource: ResourceName; field: string }[]>;
