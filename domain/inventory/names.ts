/** The resources of the inventory by their names in paths. */
export const RESOURCE_NAMES = [
  'tenants',
  'regions',
  'sites',
  'locations',
  'racks',
  'manufacturers',
  'device-types',
  'device-roles',
  'platforms',
  'devices',
  'interfaces',
  'cables',
  'vrfs',
  'vlan-groups',
  'vlans',
  'prefixes',
  'ip-ranges',
  'ip-addresses',
  'tags',
  'custom-fields',
] as const;
export type ResourceName = (typeof RESOURCE_NAMES)[number];

const NAMES: ReadonlySet<unknown> = new Set(RESOURCE_NAMES);

export const isResourceName = (name: unknown): name is ResourceName => NAMES.has(name);
