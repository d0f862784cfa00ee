import type { ResourceName } from '../../domain/inventory/names.ts';

/** An example of a create request for each resource. */
export const CREATE_EXAMPLES: Readonly<Record<ResourceName, Record<string, unknown>>> = {
  tenants: { id: 'acme', name: 'Acme' },
  regions: { name: 'Europe' },
  sites: { name: 'ams1', regionId: { name: 'Europe' }, latitude: 52.3, longitude: 4.9 },
  locations: { name: 'Hall 1', siteId: { name: 'ams1' } },
  racks: { name: 'r1', siteId: { name: 'ams1' }, uHeight: 42 },
  manufacturers: { name: 'Juniper' },
  'device-types': { manufacturerId: { name: 'Juniper' }, model: 'QFX5120', uHeight: 1 },
  'device-roles': { name: 'leaf', color: '#00a1ff' },
  platforms: { name: 'junos', manufacturerId: { name: 'Juniper' } },
  devices: {
    name: 'leaf1',
    siteId: { name: 'ams1' },
    rackId: { name: 'r1' },
    position: 10,
    face: 'front',
    deviceTypeId: { model: 'QFX5120' },
  },
  interfaces: { deviceId: { name: 'leaf1' }, name: 'et-0/0/0', kind: 'fiber' },
  cables: {
    aInterfaceId: 'int_01m7zq8v1c9x4t6b2n5k0d3f7h',
    bInterfaceId: 'int_01m7zq8v1c9x4t6b2n5k0d3f7j',
  },
  vrfs: { name: 'blue', rd: '65000:100' },
  'vlan-groups': { name: 'ams1', minVid: 100, maxVid: 199 },
  vlans: { vid: 100, name: 'management', groupId: { name: 'ams1' } },
  prefixes: { cidr: '10.0.0.0/16', status: 'container' },
  'ip-ranges': { startAddress: '10.0.1.10', endAddress: '10.0.1.20' },
  'ip-addresses': { address: '10.0.0.5/24', dnsName: 'leaf1.example.net' },
  tags: { id: 'core', name: 'Core', color: '#ff0000' },
  'custom-fields': { resource: 'devices', name: 'owner', type: 'text' },
};
