import { address, choice, flag, integer, matching, network, reference, text } from '../fields.ts';
import { resource } from '../resource.ts';

export const vrfs = resource({
  name: 'vrfs',
  kind: 'vrf',
  ids: 'vrf',
  fields: {
    name: text({ required: true }),
    rd: matching('^[0-9.]{1,15}:[0-9]{1,10}$', 'must be a route distinguisher such as 65000:100'),
    enforceUnique: flag(true, { description: 'Each prefix and each address may be there once.' }),
  },
  unique: [['tenantId', 'name'], ['rd']],
  search: ['name', 'rd', 'description'],
});

const vid = (more: object) => integer(1, 4_094, more);

export const vlanGroups = resource({
  name: 'vlan-groups',
  kind: 'vlan-group',
  ids: 'vlg',
  standing: 'site',
  fields: {
    name: text({ required: true }),
    siteId: reference('sites'),
    minVid: vid({ default: 1 }),
    maxVid: vid({ default: 4_094 }),
  },
  unique: [['tenantId', 'name']],
});

const STATUSES = ['active', 'reserved', 'deprecated'];

export const vlans = resource({
  name: 'vlans',
  kind: 'vlan',
  ids: 'vln',
  standing: 'site',
  fields: {
    vid: vid({ required: true }),
    name: text({ required: true }),
    groupId: reference('vlan-groups'),
    siteId: reference('sites'),
    status: choice(STATUSES, { default: 'active' }),
  },
  unique: [
    ['groupId', 'vid'],
    ['groupId', 'name'],
  ],
  sorts: ['name', 'vid'],
});

export const prefixes = resource({
  name: 'prefixes',
  kind: 'prefix',
  ids: 'pfx',
  standing: 'site',
  fields: {
    cidr: network({ required: true }),
    vrfId: reference('vrfs', { description: 'null is the global table.' }),
    parentPrefixId: reference('prefixes', { description: 'Worked out when none is given.' }),
    status: choice(['container', ...STATUSES], { default: 'active' }),
    allocationMode: choice(['static', 'pool', 'dynamic'], { default: 'static' }),
    siteId: reference('sites'),
    vlanId: reference('vlans'),
    roleId: reference('device-roles'),
  },
  handsOn: [{ resource: 'prefixes', field: 'parentPrefixId' }],
  label: 'cidr',
  sorts: ['cidr'],
  search: ['cidr', 'description'],
  names: ['cidr'],
});

export const ipRanges = resource({
  name: 'ip-ranges',
  kind: 'ip-range',
  ids: 'rng',
  fields: {
    startAddress: address({ required: true }),
    endAddress: address({ required: true }),
    vrfId: reference('vrfs'),
    status: choice(STATUSES, { default: 'active' }),
  },
  label: 'startAddress',
  sorts: ['startAddress'],
  search: ['startAddress', 'endAddress', 'description'],
  names: ['startAddress'],
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

export const ipAddresses = resource({
  name: 'ip-addresses',
  kind: 'ip-address',
  ids: 'ipa',
  fields: {
    address: address({ required: true, withLength: true }),
    vrfId: reference('vrfs'),
    status: choice([...STATUSES, 'dhcp', 'slaac'], { default: 'active' }),
    role: choice(['loopback', ...SHARED_ROLES]),
    interfaceId: reference('interfaces'),
    deviceId: reference('devices', { derived: true }),
    dnsName: text({ max: 255 }),
  },
  label: 'address',
  sorts: ['address'],
  search: ['address', 'dnsName', 'description'],
  names: ['address', 'dnsName'],
});
