import fc from 'fast-check';
import type { TestApp } from './app.ts';
import { assignedToApprovers } from './approvals.ts';
import type { TestClient } from './client.ts';
import { admin } from './users.ts';

/** Words of names and descriptions: parts of each other, in both cases, with characters of patterns. */
const WORDS = [
  'core',
  'Core-1',
  'xcore',
  'edge',
  'Edge rack',
  'ed',
  'a',
  '100%_x',
  '\\d+',
  'Zürich',
  '[x]',
];
const word = fc.constantFrom(...WORDS);
const TENANTS = ['one', 'two', 'platform'] as const;
const tenant = fc.constantFrom(...TENANTS);
/** Whom a record is shared with: no tenant, one, or all. */
const shares = fc.constantFrom([], [], ['one'], ['two'], ['*']);

/** Addresses and networks whose texts have several forms: hosts, and IPv6 with an IPv4 suffix. */
const NETWORKS = [
  '10.7.0.0/16',
  '10.7.1.0/24',
  '10.7.1.5/32',
  '::ffff:10.7.1.0/120',
  '64:ff9b::/96',
  '::10.7.0.0/112',
];
const HOSTS = [
  '10.7.1.5',
  '10.7.1.9/24',
  '10.7.2.1/32',
  '::ffff:10.7.1.5',
  '::10.7.1.5',
  '64:ff9b::10.7.1.5/96',
];
const RANGES = [
  ['10.7.1.4', '10.7.1.8'],
  ['::ffff:10.7.1.4', '::ffff:10.7.1.6'],
] as const;
const MAC_FORMS = [
  '02:00:00:ab:cd:01',
  '0200.00AB.cd01',
  '02-00-00-ab-cd-01',
  '0200-00ab-CD01',
  '02 00 00 ab cd 01',
];

const device = fc.record({
  tenant,
  site: fc.nat(2),
  word,
  serial: fc.constantFrom(null, 'SN-1', 'SN-2'),
  mac: fc.boolean(),
  host: fc.option(fc.constantFrom(...HOSTS)),
});
const role = fc.record({
  roleId: fc.constantFrom('viewer', 'operator', 'approver', 'platform-admin'),
  at: fc.constantFrom('tenant', 'tenant', 'site', 'device', 'platform'),
  pick: fc.nat(2),
});

/** An estate of two tenants and the platform, what their users may do, and what is searched. */
export const searchEstate = fc.record({
  sites: fc.array(fc.record({ tenant, word, shares }), { minLength: 3, maxLength: 3 }),
  devices: fc.array(device, { minLength: 3, maxLength: 4 }),
  networks: fc.array(
    fc.record({
      tenant,
      cidr: fc.constantFrom(...NETWORKS),
      site: fc.option(fc.nat(2)),
      isInVrf: fc.boolean(),
    }),
    { minLength: 3, maxLength: 5 },
  ),
  ranges: fc.subarray([...RANGES]),
  hosts: fc.subarray(HOSTS),
  others: fc.record({
    tenant,
    word,
    shares,
    kind: fc.constantFrom('vrfs', 'vlan-groups', 'regions', 'vlans'),
  }),
  texts: fc.uniqueArray(
    fc.oneof(
      word,
      fc.constantFrom(
        'c',
        'E',
        'ed',
        'co',
        '1',
        'core edge',
        'rack edge',
        'cor',
        'ore',
        'croe',
        'nothing like this',
      ),
      fc.constantFrom('SN-1', 'sn-', '3999', 'viewer', '10.7.', '10.7.1', '64:ff9b:', ...MAC_FORMS),
      fc.constantFrom(...NETWORKS, ...HOSTS),
    ),
    { minLength: 7, maxLength: 9 },
  ),
  roles: fc.array(fc.array(role, { maxLength: 3 }), { minLength: 3, maxLength: 3 }),
});
type SearchEstate = typeof searchEstate extends fc.Arbitrary<infer T> ? T : never;

type Create = (path: string, body: object) => Promise<string | undefined>;

/** Creates a record; undefined if a rule of the inventory refuses it. */
const creator =
  (client: TestClient): Create =>
  async (path, body) => {
    const { status, body: created } = await client.post<{ id: string }>(`/api/${path}`, body);
    if (status >= 500) throw new Error(`${path} ${status}`);
    return status < 300 ? created.id : undefined;
  };

/** The facilities, devices and interfaces. Returns the ids of sites and devices. */
async function seedDevices(
  create: Create,
  { sites, devices }: SearchEstate,
  { id, name }: { id: (tenant: string) => string; name: (word: string) => string },
) {
  const maker = await create('inventory/manufacturers', { name: name('maker') });
  const deviceTypeId = await create('inventory/device-types', {
    manufacturerId: maker,
    model: name('model'),
  });
  const found = { sites: [] as string[], devices: [] as string[], interfaces: [] as string[] };
  const keep = (of: string[], created: string | undefined) =>
    created === undefined ? undefined : of.push(created);
  for (const { tenant, word, shares } of sites) {
    const at = { tenantId: id(tenant), sharedWith: shares.map(id) };
    keep(found.sites, await create('inventory/sites', { name: name(word), ...at }));
    await create('inventory/racks', { name: name(word), siteId: found.sites.at(-1), ...at });
  }
  for (const { tenant, site, word, serial } of devices)
    keep(
      found.devices,
      await create('inventory/devices', {
        ...{ name: name(word), siteId: found.sites[site], tenantId: id(tenant), deviceTypeId },
        ...(serial !== null && { serial }),
      }),
    );
  for (const [i, deviceId] of found.devices.entries())
    keep(
      found.interfaces,
      await create('inventory/interfaces', {
        ...{ deviceId, name: name('eth') },
        ...(devices[i]?.mac === true && { macAddress: MAC_FORMS[0] }),
      }),
    );
  await create('inventory/cables', {
    label: name('core'),
    aInterfaceId: found.interfaces[0],
    bInterfaceId: found.interfaces[1],
  });
  return found;
}

/**
 * Creates an estate of its own tenants, as far as the rules of the inventory allow it. Returns the
 * roles of users, and what is searched: texts, and the ids of records.
 */
export async function seedSearchEstate(app: TestApp, estate: SearchEstate, round: number) {
  let count = 0;
  const id = (tenant: string) => (tenant.length === 3 ? `s${round}-${tenant}` : tenant);
  const name = (word: string) => `${word} ${round}-${count++}`;
  const create = creator(admin(app));
  for (const tenant of ['one', 'two'])
    await create('inventory/tenants', { id: id(tenant), name: name('Core Ltd') });
  const { sites, devices, interfaces } = await seedDevices(create, estate, { id, name });
  const { others } = estate;
  const vrfId = await create('inventory/vrfs', { name: name('ed'), enforceUnique: false });
  await create(`inventory/${others.kind}`, {
    ...{ name: name(others.word), tenantId: id(others.tenant), sharedWith: others.shares.map(id) },
    ...(others.kind === 'vlans' && { vid: 3_999 }),
  });
  for (const { tenant, cidr, site, isInVrf } of estate.networks)
    await create('inventory/prefixes', {
      ...{ cidr, tenantId: id(tenant), description: name('core') },
      ...(isInVrf && { vrfId }),
      ...(site !== null && { siteId: sites[site] }),
    });
  for (const [startAddress, endAddress] of estate.ranges)
    await create('inventory/ip-ranges', { startAddress, endAddress, vrfId, tenantId: id('one') });
  for (const [i, address] of estate.hosts.entries())
    await create('inventory/ip-addresses', { address, vrfId, tenantId: id(TENANTS[i % 3] ?? '') });
  for (const [i, { host, word }] of estate.devices.entries())
    if (host !== null)
      await create('inventory/ip-addresses', {
        ...{ address: host, interfaceId: interfaces[i], dnsName: `core-${i}.example` },
        description: word,
      });
  const ids: (string | undefined)[] = [];
  for (const tenant of ['one', 'two']) {
    const at = creator(
      app.client.as({ actor: 'boss', roles: 'platform-admin', tenant: id(tenant) }),
    );
    const job = { jobType: 'core.echo', payload: {} };
    ids.push(
      await at('schedules', { name: name('core'), cronExpression: '0 3 1 1 *', ...job }),
      await at('workflows', { ...assignedToApprovers, title: name('Edge') }),
      await at('webhooks', { endpointUrl: 'https://core.example/x', eventTypes: ['job.failed'] }),
      await at('jobs', { type: 'core.echo', payload: {} }),
    );
  }
  const known = [...ids, ...sites, ...devices].filter((each) => each !== undefined);
  const scopeOf = { tenant: ['one', 'two', 'platform'].map(id), site: sites, device: devices };
  const roles = estate.roles.map((held) => {
    // A role can be held once at each scope.
    const assigned = held.map(({ roleId, at, pick }) => {
      const target = at === 'platform' ? undefined : scopeOf[at][pick];
      if (target === undefined || target === 'platform') return [roleId, { roleId }] as const;
      return [`${roleId} ${target}`, { roleId, [`${at}Id`]: target }] as const;
    });
    return [...new Map(assigned).values()];
  });
  return { roles, searched: [...estate.texts, ...known.slice(0, 10)] };
}
