import type { Mutation } from '../../domain/inventory/planning.ts';

/** Size of the estate. `PREFIXES` is a total. */
const SITES_IN_REGION = [14, 13, 13];
const DEVICES_AT_SITE = 50;
const INTERFACES_OF_DEVICE = 10;
const RACKS_AT_SITE = 5;
const ADDRESSES_AT_SITE = 1_250;
const PREFIXES = 10_000;

const REGIONS = ['Europe', 'Americas', 'Asia'];
const CITIES = [
  'ams',
  'fra',
  'lon',
  'par',
  'mad',
  'mil',
  'vie',
  'prg',
  'waw',
  'sto',
  'hel',
  'osl',
  'cph',
  'dub',
];

const create = (resource: string, record: object): Mutation => ({
  resource,
  operation: 'create',
  record,
});
const byName = (name: string) => ({ name });

const macOf = (site: number, device: number, port: number): string =>
  ['02', site, device >> 8, device & 255, port, 0]
    .map((part) => (typeof part === 'string' ? part : part.toString(16).padStart(2, '0')))
    .join(':');

/**
 * Yields the mutations of a fictional company's estate, always the same. Later ones refer to
 * earlier ones.
 */
export function* demoEstate(): Generator<Mutation> {
  yield create('tags', { id: 'demo', name: 'Demo' });
  yield* catalogMutations();
  yield create('prefixes', {
    cidr: '10.0.0.0/8',
    status: 'container',
    description: 'Everything',
    tags: ['demo'],
  });
  let [site, prefixes] = [0, 1];
  for (const [region, sites] of SITES_IN_REGION.entries()) {
    yield create('regions', { name: REGIONS[region] });
    for (let i = 0; i < sites; i++) {
      const networks = Math.min(250, PREFIXES - prefixes);
      prefixes += networks;
      yield* siteMutations(site++, region, networks);
    }
  }
}

function* catalogMutations(): Generator<Mutation> {
  for (const name of ['Arista', 'Juniper']) yield create('manufacturers', { name });
  yield create('device-types', { manufacturerId: byName('Arista'), model: '7050SX3', uHeight: 1 });
  yield create('device-types', { manufacturerId: byName('Juniper'), model: 'QFX5120', uHeight: 1 });
  yield create('device-types', { manufacturerId: byName('Juniper'), model: 'MX304', uHeight: 2 });
  for (const name of ['router', 'switch']) yield create('device-roles', { name });
  yield create('platforms', { name: 'EOS', manufacturerId: byName('Arista') });
  yield create('platforms', { name: 'Junos', manufacturerId: byName('Juniper') });
}

function* siteMutations(site: number, region: number, networks: number): Generator<Mutation> {
  const name = `${CITIES[site % CITIES.length] ?? 'x'}${1 + Math.floor(site / CITIES.length)}`;
  yield create('sites', { name, regionId: byName(REGIONS[region] ?? ''), tags: ['demo'] });
  for (let rack = 1; rack <= RACKS_AT_SITE; rack++)
    yield create('racks', { name: `${name}-r${rack}`, siteId: byName(name) });
  yield create('vlan-groups', { name, siteId: byName(name) });
  for (const vid of [10, 20, 30])
    yield create('vlans', { vid, name: `${name}-v${vid}`, groupId: byName(name) });
  yield create('prefixes', {
    cidr: `10.${site + 1}.0.0/16`,
    status: 'container',
    siteId: byName(name),
  });
  for (let net = 0; net < networks - 1; net++)
    yield create('prefixes', {
      cidr: `10.${site + 1}.${net}.0/24`,
      siteId: byName(name),
      allocationMode: 'pool',
    });
  for (let device = 0; device < DEVICES_AT_SITE; device++)
    yield* deviceMutations(name, site, device);
  for (let i = DEVICES_AT_SITE * INTERFACES_OF_DEVICE; i < ADDRESSES_AT_SITE; i++)
    yield create('ip-addresses', { address: addressAt(site, i), status: 'dhcp' });
}

/** Each network of a site has 50 addresses, starting at .10. */
const addressAt = (site: number, number: number): string =>
  `10.${site + 1}.${Math.floor(number / 50)}.${10 + (number % 50)}`;

function* deviceMutations(site: string, siteNumber: number, device: number): Generator<Mutation> {
  const [name, isRouter] = [`${site}-d${device + 1}`, device < 2];
  const rack = `${site}-r${1 + (device % RACKS_AT_SITE)}`;
  yield create('devices', {
    name,
    siteId: byName(site),
    rackId: byName(rack),
    position: 1 + 2 * Math.floor(device / RACKS_AT_SITE),
    face: 'front',
    serial: `S${siteNumber}-${device}`,
    deviceTypeId: { model: isRouter ? 'MX304' : device % 2 === 0 ? '7050SX3' : 'QFX5120' },
    roleId: byName(isRouter ? 'router' : 'switch'),
    platformId: byName(!isRouter && device % 2 === 0 ? 'EOS' : 'Junos'),
  });
  for (let port = 0; port < INTERFACES_OF_DEVICE; port++) {
    const macAddress = macOf(siteNumber, device, port);
    yield create('interfaces', {
      deviceId: byName(name),
      name: `et-0/0/${port}`,
      kind: 'fiber',
      macAddress,
    });
    yield create('ip-addresses', {
      address: addressAt(siteNumber, device * INTERFACES_OF_DEVICE + port),
      interfaceId: { macAddress },
    });
  }
  // Each device is connected to the previous one.
  if (device > 0)
    yield create('cables', {
      aInterfaceId: { macAddress: macOf(siteNumber, device - 1, 9) },
      bInterfaceId: { macAddress: macOf(siteNumber, device, 0) },
      kind: 'smf',
    });
}
