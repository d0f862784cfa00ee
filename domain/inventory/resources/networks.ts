import { address, choice, flag, integer, matching, network, reference, text } from '../fields.ts';
import { defineResource } from '../resource.ts';

export const vrfs = defineResource({
  name: 'vrfs',
  kind: 'vrf',
  idPrefix: 'vrf',
  sharable: true,
  fields: {
    name: text({ required: true }),
    rd: matching('^[0-9.]{1,15}:[0-9]{1,10}$', 'must be a route distinguisher such as 65000:100'),
    enforceUnique: flag(true, { description: 'Each prefix and each address may be there once.' }),
  },
  uniqueKeys: [
    ['tenantId', 'name'],
    ['tenantId', 'rd'],
  ],
  searchFields: ['name', 'rd', 'description'],
});

const vid = (more: object) => integer(1, 4_094, more);

export const vlanGroups = defineResource({
  name: 'vlan-groups',
  kind: 'vlan-group',
  idPrefix: 'vlg',
  sharable: true,
  scopeKind: 'site',
  fields: {
    name: text({ required: true }),
    siteId: reference('sites'),
    minVid: vid({ default: 1 }),
    maxVid: vid({ default: 4_094 }),
  },
  uniqueKeys: [['tenantId', 'name']],
});

const STATUSES = ['active', 'reserved', 'deprecated'];

export const vlans = defineResource({
  name: 'vlans',
  kind: 'vlan',
  idPrefix: 'vln',
  sharable: true,
  scopeKind: 'site',
  fields: {
    vid: vid({ required: true }),
    name: text({ required: true }),
    groupId: reference('vlan-groups'),
    siteId: reference('sites'),
    status: choice(STATUSES, { default: 'active' }),
  },
  uniqueKeys: [
    ['groupId', 'vid'],
    ['tenantId', 'groupId', 'name'],
  ],
  sortFields: ['name', 'vid'],
});

export const prefixes = defineResource({
  name: 'prefixes',
  kind: 'prefix',
  idPrefix: 'pfx',
  scopeKind: 'site',
  fields: {
    cidr: network({ required: true }),
    vrfId: reference('vrfs', { description: 'null is the global table.' }),
    parentPrefixId: reference('prefixes', {
      description: 'Computed by default: the smallest prefix that contains this one.',
    }),
    status: choice(['container', ...STATUSES], { default: 'active' }),
    allocationMode: choice(['static', 'pool', 'dynamic'], { default: 'static' }),
    siteId: reference('sites'),
    vlanId: reference('vlans'),
    roleId: reference('device-roles'),
  },
  reparents: [{ resource: 'prefixes', field: 'parentPrefixId' }],
  labelField: 'cidr',
  sortFields: ['cidr'],
  searchFields: ['cidr', 'description'],
  lookupFields: ['cidr'],
});

export const ipRanges = defineResource({
  name: 'ip-ranges',
  kind: 'ip-range',
  idPrefix: 'rng',
  fields: {
    startAddress: address({ required: true }),
    endAddress: address({ required: true }),
    vrfId: reference('vrfs'),
    status: choice(STATUSES, { default: 'active' }),
  },
  labelField: 'startAddress',
  sortFields: ['startAddress'],
  searchFields: ['startAddress', 'endAddress', 'description'],
  lookupFields: ['startAddress'],
});

/** Roles that let several interfaces have one address. */
export const SHARED_ROLES: readonly string[] = [
  'anycast',
  'vip',
  'vrrp',
  'hsrp',
  'glbp',
  'carp',
  'secondary',
];

export const ipAddresses = defineResource({
  name: 'ip-addresses',
  kind: 'ip-address',
  idPrefix: 'ipa',
  fields: {
    address: address({ required: true, withLength: true }),
    vrfId: reference('vrfs'),
    status: choice([...STATUSES, 'dhcp', 'slaac'], { default: 'active' }),
    role: choice(['loopback', ...SHARED_ROLES]),
    interfaceId: reference('interfaces'),
    deviceId: reference('devices', { derived: true }),
    dnsName: text({ max: 255 }),
  },
  labelField: 'address',
  sortFields: ['address', 'dnsName'],
  searchFields: ['address', 'dnsName', 'description'],
  lookupFields: ['address', 'dnsName'],
});
