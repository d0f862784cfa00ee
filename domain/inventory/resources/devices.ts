import { choice, flag, integer, macAddress, reference, text } from '../fields.ts';
import { defineResource } from '../resource.ts';

export const devices = defineResource({
  name: 'devices',
  kind: 'device',
  idPrefix: 'dev',
  scopeKind: 'isDevice',
  fields: {
    name: text({ required: true }),
    status: choice(['planned', 'staged', 'active', 'offline', 'failed', 'retired'], {
      default: 'active',
    }),
    siteId: reference('sites', { required: true }),
    locationId: reference('locations'),
    rackId: reference('racks'),
    position: integer(1, 100, {
      description: 'The lowest rack unit that it takes; 1 is at the bottom.',
    }),
    face: choice(['front', 'rear']),
    deviceTypeId: reference('device-types', { required: true }),
    roleId: reference('device-roles'),
    platformId: reference('platforms'),
    serial: text(),
    assetTag: text(),
    primaryIp4Id: reference('ip-addresses'),
    primaryIp6Id: reference('ip-addresses'),
  },
  uniqueKeys: [
    ['tenantId', 'siteId', 'name'],
    ['tenantId', 'assetTag'],
  ],
  sortFields: ['name', 'serial', 'assetTag'],
  searchFields: ['name', 'serial', 'assetTag', 'description'],
  cascades: [{ resource: 'interfaces', field: 'deviceId' }],
});

export const interfaces = defineResource({
  name: 'interfaces',
  kind: 'interface',
  idPrefix: 'int',
  sharable: true,
  scopeKind: 'onDevice',
  fields: {
    deviceId: reference('devices', { required: true, immutable: true }),
    name: text({ required: true }),
    kind: choice(['copper', 'fiber', 'wireless', 'lag', 'bridge', 'loopback', 'virtual'], {
      default: 'copper',
    }),
    enabled: flag(true),
    managementOnly: flag(false),
    speedMbps: integer(1, 10_000_000),
    mtu: integer(68, 65_536),
    macAddress: macAddress({
      description: 'In any usual notation; stored as 00:1b:2c:3d:4e:5f.',
    }),
    lagId: reference('interfaces'),
    vrfId: reference('vrfs'),
    mode: choice(['access', 'tagged']),
    untaggedVlanId: reference('vlans'),
    tenantId: reference('tenants', { derived: true }),
    siteId: reference('sites', { derived: true }),
  },
  uniqueKeys: [['deviceId', 'name']],
  searchFields: ['name', 'macAddress', 'description'],
  lookupFields: ['name', 'macAddress'],
  cascades: [
    { resource: 'cables', field: 'aInterfaceId' },
    { resource: 'cables', field: 'bInterfaceId' },
  ],
  setNullOn: [
    { resource: 'ip-addresses', field: 'interfaceId', alsoClears: ['deviceId'] },
    { resource: 'interfaces', field: 'lagId' },
  ],
});

export const cables = defineResource({
  name: 'cables',
  kind: 'cable',
  idPrefix: 'cab',
  fields: {
    aInterfaceId: reference('interfaces', { required: true }),
    bInterfaceId: reference('interfaces', { required: true }),
    label: text(),
    kind: choice(['cat5e', 'cat6', 'cat6a', 'cat8', 'dac', 'mmf', 'smf', 'aoc', 'other'], {
      default: 'other',
    }),
    status: choice(['planned', 'connected', 'retired'], { default: 'connected' }),
    lengthMeters: integer(0, 1_000_000),
  },
  labelField: 'label',
  sortFields: ['label'],
  searchFields: ['label', 'description'],
  lookupFields: ['label'],
});
