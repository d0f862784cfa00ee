import type { ResourceName } from '../../../domain/inventory/names.ts';
import type { TestClient } from '../client.ts';
import { recordFactory } from '../inventory.ts';

export const TENANT = 'red';

/** A mutation, as batches, requests for approval and lines of NDJSON have it. */
export type Attack = {
  resource: ResourceName;
  operation: 'create' | 'update' | 'delete';
  record: Record<string, unknown>;
};

const create = (resource: ResourceName, record: object): Attack => ({
  resource,
  operation: 'create',
  record: { ...record },
});
const update = (resource: ResourceName, id: string, fields: object): Attack => ({
  resource,
  operation: 'update',
  record: { id, ...fields },
});
const remove = (resource: ResourceName, id: string): Attack => ({
  resource,
  operation: 'delete',
  record: { id },
});

type Make = (resource: ResourceName, record: object) => Promise<string>;

/** The facilities and devices of one site: `own` and `beside` have three interfaces, `spare` none. */
async function seedSite(make: Make, name: string, deviceTypeId: string) {
  const site = await make('sites', { name, tenantId: TENANT });
  const at = { siteId: site, tenantId: TENANT };
  const device = (of: string) => make('devices', { name: `${name}-${of}`, deviceTypeId, ...at });
  const own = await device('own');
  const beside = await device('beside');
  const ports = (deviceId: string) =>
    Promise.all(['e0', 'e1', 'e2'].map((port) => make('interfaces', { deviceId, name: port })));
  const group = await make('vlan-groups', { name: `${name}-group`, ...at });
  return {
    site,
    location: await make('locations', { name: 'hall', ...at }),
    rack: await make('racks', { name: 'rack', ...at }),
    own,
    beside,
    spare: await device('spare'),
    ownPorts: await ports(own),
    besidePorts: await ports(beside),
    group,
    vlan: await make('vlans', { vid: 7, name: 'vlan', groupId: group, tenantId: TENANT }),
  };
}

export type SiteEstate = Awaited<ReturnType<typeof seedSiteEstate>>;

/**
 * A tenant with two sites that have one VRF in common: 10.1.0.0/16 is here, 10.2.0.0/16 is there, the space around them
 * is the tenant's. A cable and addresses belong to both.
 */
export async function seedSiteEstate(client: TestClient) {
  const created = recordFactory(() => client);
  const make: Make = async (resource, record) => (await created(resource, record)).id;
  await make('tenants', { id: TENANT, name: TENANT });
  await make('tenants', { id: 'blue', name: 'blue' });
  await make('tags', { id: 'core', name: 'Core' });
  const maker = await make('manufacturers', { name: 'm' });
  const deviceTypeId = await make('device-types', { manufacturerId: maker, model: 't' });
  const here = await seedSite(make, 'here', deviceTypeId);
  const there = await seedSite(make, 'there', deviceTypeId);
  const own: Make = (resource, record) => make(resource, { tenantId: TENANT, ...record });
  const vrfId = await own('vrfs', { name: 'vrf' });
  const prefix = (cidr: string, more: object = {}) =>
    own('prefixes', { cidr, vrfId, allocationMode: 'pool', ...more });
  const address = (text: string, interfaceId: string | null = null) =>
    own('ip-addresses', { address: `${text}/16`, vrfId, interfaceId });
  const range = (network: string) =>
    own('ip-ranges', { startAddress: `${network}.0.100`, endAddress: `${network}.0.110`, vrfId });
  const cable = (aInterfaceId?: string, bInterfaceId?: string) =>
    own('cables', { aInterfaceId, bInterfaceId });
  return {
    here,
    there,
    deviceTypeId,
    vrfId,
    region: await own('regions', { name: 'region' }),
    wideGroup: await own('vlan-groups', { name: 'wide' }),
    wide: await prefix('10.0.0.0/8'),
    ours: await prefix('10.1.0.0/16', { siteId: here.site }),
    theirs: await prefix('10.2.0.0/16', { siteId: there.site }),
    inner: await prefix('10.1.5.0/24', { siteId: here.site }),
    ourAddress: await address('10.1.0.1'),
    theirAddress: await address('10.2.0.1'),
    ownAddress: await address('10.1.0.2', here.ownPorts[0]),
    farPortAddress: await address('10.1.0.9', there.ownPorts[0]),
    farSpaceAddress: await address('10.2.0.9', here.ownPorts[0]),
    ourRange: await range('10.1'),
    theirRange: await range('10.2'),
    cableAcross: await cable(here.ownPorts[0], there.ownPorts[0]),
    cableHere: await cable(here.ownPorts[1], here.besidePorts[1]),
    customField: await own('custom-fields', { resource: 'racks', name: 'owner', type: 'text' }),
  };
}

/** What rights at the site `here`, or at a device there, do not allow. */
function outsideSite(estate: SiteEstate): Attack[] {
  const { here, there, deviceTypeId, vrfId } = estate;
  const siteId = there.site;
  const atHere = { siteId: here.site };
  return [
    create('sites', { name: 'new' }),
    create('regions', { name: 'new' }),
    create('vrfs', { name: 'new' }),
    create('custom-fields', { resource: 'racks', name: 'new', type: 'text' }),
    create('tags', { id: 'added', name: 'New' }),
    create('racks', { name: 'new', siteId }),
    create('devices', { name: 'new', siteId, deviceTypeId }),
    create('interfaces', { name: 'new', deviceId: there.own }),
    create('prefixes', { cidr: '10.2.5.0/24', vrfId, siteId: here.site }),
    create('prefixes', { cidr: '10.3.0.0/16', vrfId, siteId: here.site }),
    create('ip-ranges', { startAddress: '10.1.255.250', endAddress: '10.2.0.5', vrfId }),
    create('ip-addresses', { address: '10.2.0.77', vrfId }),
    create('ip-addresses', { address: '10.2.0.78', vrfId, interfaceId: here.ownPorts[2] }),
    create('ip-addresses', { address: '10.1.0.78', vrfId, interfaceId: there.ownPorts[2] }),
    create('vlans', { vid: 9, name: 'new', groupId: there.group }),
    create('vlans', { vid: 9, name: 'new', groupId: estate.wideGroup }),
    create('cables', { aInterfaceId: here.ownPorts[2], bInterfaceId: there.ownPorts[2] }),
    create('cables', { aInterfaceId: there.ownPorts[2], bInterfaceId: here.ownPorts[2] }),
    update('sites', here.site, { tenantId: 'blue' }),
    update('sites', siteId, { description: 'x' }),
    update('locations', here.location, { siteId }),
    update('locations', there.location, atHere),
    update('racks', here.rack, { siteId }),
    update('racks', there.rack, atHere),
    update('racks', there.rack, { customFields: { owner: 'x' }, tags: ['core'] }),
    update('devices', here.own, { tenantId: 'blue' }),
    update('devices', here.own, { siteId }),
    update('devices', here.spare, { siteId }),
    update('devices', here.spare, { siteId, rackId: there.rack, position: 1, face: 'front' }),
    update('devices', there.spare, atHere),
    update('devices', there.spare, { rackId: there.rack, position: 1, face: 'front' }),
    update('interfaces', there.ownPorts[1] ?? '', { enabled: false }),
    update('prefixes', estate.inner, { siteId }),
    update('prefixes', estate.inner, { cidr: '10.3.5.0/24' }),
    update('prefixes', estate.inner, { cidr: '10.2.5.0/24' }),
    update('prefixes', estate.inner, { vrfId: null }),
    update('prefixes', estate.ours, { siteId: null }),
    update('prefixes', estate.ours, { cidr: '10.0.0.0/14' }),
    update('prefixes', estate.theirs, atHere),
    update('prefixes', estate.wide, atHere),
    update('prefixes', estate.wide, { tags: ['core'] }),
    update('ip-addresses', estate.ourAddress, { address: '10.2.0.7' }),
    update('ip-addresses', estate.ourAddress, { interfaceId: there.ownPorts[1] }),
    update('ip-addresses', estate.ourAddress, { vrfId: null }),
    update('ip-addresses', estate.theirAddress, { address: '10.1.0.7' }),
    update('ip-addresses', estate.theirAddress, { interfaceId: here.ownPorts[2] }),
    update('ip-addresses', estate.farPortAddress, { interfaceId: here.ownPorts[2] }),
    update('ip-addresses', estate.farPortAddress, { interfaceId: null }),
    update('ip-addresses', estate.farSpaceAddress, { interfaceId: null }),
    update('ip-addresses', estate.farSpaceAddress, { address: '10.1.0.79' }),
    update('ip-ranges', estate.ourRange, { endAddress: '10.2.0.90' }),
    update('ip-ranges', estate.theirRange, {
      startAddress: '10.1.0.111',
      endAddress: '10.1.0.120',
    }),
    update('vlan-groups', here.group, { siteId }),
    update('vlan-groups', here.group, { siteId: null }),
    update('vlan-groups', there.group, atHere),
    update('vlan-groups', estate.wideGroup, atHere),
    update('vlans', here.vlan, { groupId: there.group }),
    update('vlans', here.vlan, { groupId: estate.wideGroup }),
    update('vlans', there.vlan, { groupId: here.group }),
    update('cables', estate.cableAcross, { label: 'x' }),
    update('cables', estate.cableAcross, { bInterfaceId: here.besidePorts[2] }),
    update('cables', estate.cableHere, { bInterfaceId: there.ownPorts[1] }),
    update('custom-fields', estate.customField, { required: true }),
    update('tags', 'core', { name: 'x' }),
    ...cascadesOutside(estate),
  ];
}

/** Deletes of records elsewhere, and of records here on which something elsewhere hangs. */
function cascadesOutside(estate: SiteEstate): Attack[] {
  const { here, there } = estate;
  return [
    remove('devices', here.own),
    remove('interfaces', here.ownPorts[0] ?? ''),
    remove('devices', there.spare),
    remove('interfaces', there.ownPorts[1] ?? ''),
    remove('racks', there.rack),
    remove('sites', there.site),
    remove('cables', estate.cableAcross),
    remove('prefixes', estate.theirs),
    remove('prefixes', estate.wide),
    remove('ip-addresses', estate.farPortAddress),
    remove('ip-addresses', estate.farSpaceAddress),
    remove('ip-ranges', estate.theirRange),
    remove('vrfs', estate.vrfId),
    remove('vlan-groups', there.group),
    remove('vlans', there.vlan),
    remove('regions', estate.region),
    remove('custom-fields', estate.customField),
    remove('tags', 'core'),
    remove('tenants', TENANT),
  ];
}

/** What a right at the device `here.own` does not allow at its site. */
function outsideDevice(estate: SiteEstate): Attack[] {
  const { here, deviceTypeId, vrfId } = estate;
  return [
    create('racks', { name: 'new', siteId: here.site }),
    create('devices', { name: 'new', siteId: here.site, deviceTypeId }),
    create('interfaces', { name: 'new', deviceId: here.beside }),
    create('prefixes', { cidr: '10.1.6.0/24', vrfId, siteId: here.site }),
    create('ip-addresses', { address: '10.1.0.79', vrfId }),
    create('cables', { aInterfaceId: here.ownPorts[2], bInterfaceId: here.besidePorts[2] }),
    update('sites', here.site, { description: 'x' }),
    update('racks', here.rack, { tags: ['core'] }),
    update('devices', here.spare, { description: 'x' }),
    update('interfaces', here.besidePorts[2] ?? '', { enabled: false }),
    update('prefixes', estate.inner, { description: 'x' }),
    update('ip-addresses', estate.ourAddress, { interfaceId: here.ownPorts[2] }),
    update('ip-addresses', estate.ownAddress, { interfaceId: here.besidePorts[2] }),
    update('ip-addresses', estate.ownAddress, { interfaceId: null }),
    update('vlans', here.vlan, { description: 'x' }),
    update('cables', estate.cableHere, { label: 'x' }),
    remove('devices', here.spare),
    remove('interfaces', here.ownPorts[1] ?? ''),
    remove('interfaces', here.besidePorts[2] ?? ''),
    remove('prefixes', estate.inner),
    remove('ip-addresses', estate.ourAddress),
    remove('vlan-groups', here.group),
  ];
}

/** What each right does not allow, in addition to the wider one. */
export const ATTACKS = { site: outsideSite, device: outsideDevice };

let count = 0;

/** A change that each right allows; every call makes another one. */
export const ALLOWED: Record<keyof typeof ATTACKS, (estate: SiteEstate) => Attack> = {
  site: ({ here }) =>
    update('racks', here.rack, { description: `${++count}`, customFields: { owner: 'us' } }),
  device: ({ here }) => update('devices', here.own, { description: `${++count}`, tags: ['core'] }),
};
