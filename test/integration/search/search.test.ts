import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import type { SearchAnswer, SearchItem } from '../../../services/search/search.ts';
import { RESOURCE_NAMES } from '../../../domain/inventory/names.ts';
import { RESOURCES } from '../../../domain/inventory/resources/index.ts';
import { branchesOf } from '../../../db/search/branches.ts';
import { sourcesOf } from '../../../db/search/sources.ts';
import type { Scope } from '../../../domain/access/scope.ts';
import { assertDefined } from '../../../domain/shared/assert.ts';
import { systemCaller } from '../../../domain/shared/caller.ts';
import { composeSearch } from '../../../processes/composition/search.ts';
import { parseSearch, SEARCH_KINDS } from '../../../domain/search/query.ts';
import type { TestApp } from '../../support/app.ts';
import {
  seedShared,
  seedTenantEstate,
  type SharedEstate,
  type TenantEstate,
} from '../../support/attacks/tenantEstate.ts';
import { withIdleApp } from '../../support/attacks/twoTenants.ts';
import type { ProblemBody, TestClient } from '../../support/client.ts';
import { propertyRuns } from '../../support/effort.ts';
import { recordFactory } from '../../support/inventory.ts';
import { searchEstate, seedSearchEstate } from '../../support/searchEstate.ts';
import { expectedIn, labelOf, readLists, type Lists } from '../../support/searchModel.ts';
import { admin, createUser } from '../../support/users.ts';

let app: TestApp;
let shared: SharedEstate;
let red: TenantEstate;
let root: TestClient;
const make = recordFactory(() => root);
withIdleApp(async (started) => {
  app = started;
  root = admin(app);
  shared = await seedShared(app);
  red = await seedTenantEstate(app, { tenant: 'red', label: 'double', network: 31 }, shared);
  await seedTenantEstate(app, { tenant: 'blue', label: 'double', network: 32 }, shared);
});

const search = (client: TestClient, q: string, more = ''): Promise<SearchAnswer> =>
  client.get<SearchAnswer>(`/api/search?q=${encodeURIComponent(q)}${more}`).expect(200);
const found = ({ items }: SearchAnswer) =>
  items.map(({ kind, label, match }) => [kind, label, match]);
const atRed = () => app.client.as({ actor: 'boss', roles: 'platform-admin', tenant: 'red' });

describe('a search finds what the caller may read, no more and no less', () => {
  const readers: [string, () => Promise<TestClient> | TestClient][] = [
    [
      'an administrator of the platform',
      () => app.client.as({ actor: 'root', roles: 'platform-admin', tenant: 'platform' }),
    ],
    ['an administrator of a tenant', atRed],
    [
      'a user with a role at a site',
      async () => (await createUser(app, { roleId: 'operator', siteId: red.sites })).client,
    ],
    [
      'a user with a role at a device',
      async () => (await createUser(app, { roleId: 'viewer', deviceId: red.devices })).client,
    ],
    ['a user without a role', async () => (await createUser(app)).client],
  ];

  /** Compares a search with the lists of the same caller. */
  async function compare(client: TestClient, lists: Lists, q: string): Promise<void> {
    const { items, around, incomplete, more } = await search(client, q, '&limit=20');
    const expected = expectedIn(lists, q);
    const actual = items
      .filter(({ match }) => match !== 'similar')
      .map(({ kind, id, label }) => [kind, id, label].join(' '));
    const full = new Set(more);
    const isComplete = (entry: string) => !full.has(entry.split(' ', 1)[0] ?? '');
    const kindsOf = (entries: readonly string[]) => entries.filter(isComplete).toSorted();
    expect([q, incomplete, kindsOf(actual)]).toEqual([q, [], kindsOf(expected.items)]);
    expect([q, around.map(({ id, label }) => [id, label].join(' ')).toSorted()]).toEqual([
      q,
      expected.around,
    ]);
    const listed = new Set(expected.items);
    // Of kinds with more matches, and of what is only spelled alike, nothing else than what is listed.
    for (const { kind, id, label, match } of items)
      if (match === 'similar' || full.has(kind)) {
        const item = lists.get(kind)?.get(id);
        expect([q, kind, id, label]).toEqual([q, kind, item?.id, item && labelOf(kind, item)]);
        if (match !== 'similar') expect(listed).toContain([kind, id, label].join(' '));
      }
  }

  test.each(readers)('%s', async (_, clientOf) => {
    const client = await clientOf();
    const lists = await readLists(client);
    for (const q of ['double', red.job, red.webhook, red.backup]) await compare(client, lists, q);
  });

  test('in any estate, with any roles, by any text', async () => {
    let round = 0;
    await fc.assert(
      fc.asyncProperty(searchEstate, async (estate) => {
        const texts = await seedSearchEstate(app, estate, round++);
        for (const roles of texts.roles) {
          const { client } = await createUser(app, ...roles);
          const lists = await readLists(client);
          for (const q of texts.searched) await compare(client, lists, q);
        }
      }),
      { numRuns: propertyRuns(2), endOnFailure: true, includeErrorInReport: true },
    );
  });

  test('by id: every kind that a search knows, or nothing', async () => {
    const kinds: readonly [string, string][] = [
      ...RESOURCE_NAMES.filter((name) => RESOURCES[name].idPrefix !== null && name in red).map(
        (name): [string, string] => [name, red[name as 'sites']],
      ),
      ['jobs', red.job],
      ['schedules', red.schedule],
      ['workflows', red.approval],
      ['users', red.user],
      ['webhooks', red.webhook],
      ['backups', red.backup],
    ];
    const stranger = app.client.as({ actor: 'boss', roles: 'platform-admin', tenant: 'blue' });
    for (const [kind, id] of kinds) {
      expect((await search(atRed(), id.toUpperCase())).items).toMatchObject([
        { kind, id, match: 'exact' },
      ]);
      expect((await search(stranger, id)).items).toEqual([]);
      expect((await search(atRed(), id, '&kinds=tags')).items).toEqual([]);
    }
    expect((await search(atRed(), 'xyz_01jd0cmxk5e5v8kyzwq0q8s3rt')).items).toEqual([]);
  });
});

describe('a search by address', () => {
  test('finds the record, the range, and the prefixes around it, smallest first', async () => {
    const vrf = await make('vrfs', { name: 'around', tenantId: 'red' });
    const at = { vrfId: vrf.id, tenantId: 'red' };
    for (const cidr of ['172.30.0.0/16', '172.30.7.0/24', '172.30.7.64/26'])
      await make('prefixes', { cidr, ...at });
    await make('ip-ranges', { startAddress: '172.30.7.70', endAddress: '172.30.7.80', ...at });
    await make('ip-addresses', { address: '172.30.7.71/26', dnsName: 'nine.example', ...at });
    const answer = await search(root, '172.30.7.71');
    expect(found(answer)).toEqual([
      ['ip-ranges', '172.30.7.70', 'exact'],
      ['ip-addresses', '172.30.7.71/26', 'exact'],
    ]);
    expect(answer.around.map(({ label, vrfId }) => [label, vrfId])).toEqual(
      ['172.30.7.64/26', '172.30.7.0/24', '172.30.0.0/16'].map((label) => [label, vrf.id]),
    );
    const network = await search(root, '172.30.7.0/24');
    expect([found(network), network.around.map(({ label }) => label)]).toEqual([
      [['prefixes', '172.30.7.0/24', 'exact']],
      ['172.30.0.0/16'],
    ]);
    expect(found(await search(root, '172.30.7.'))).toEqual([
      ['prefixes', '172.30.7.0/24', 'prefix'],
      ['prefixes', '172.30.7.64/26', 'prefix'],
      ['ip-ranges', '172.30.7.70', 'prefix'],
      ['ip-addresses', '172.30.7.71/26', 'prefix'],
    ]);
    expect(found(await search(root, 'NINE.example'))).toEqual([
      ['ip-addresses', '172.30.7.71/26', 'exact'],
    ]);
    // The address of nobody still has prefixes around it.
    expect((await search(root, '172.30.9.9')).around.map(({ label }) => label)).toEqual([
      '172.30.0.0/16',
    ]);
  });
});

describe('a search by text', () => {
  test('ranks the whole name before beginnings, words and parts, with more than asked named', async () => {
    for (const name of ['xcorex', 'a core', 'core-1', 'core', 'CORE-2', 'core-3'])
      await make('manufacturers', { name });
    const inside = { description: 'for the core' };
    await make('platforms', { name: 'nos', ...inside });
    expect(found(await search(root, 'Core', '&kinds=manufacturers,platforms'))).toEqual([
      ['manufacturers', 'core', 'exact'],
      ['manufacturers', 'CORE-2', 'prefix'],
      ['manufacturers', 'core-1', 'prefix'],
      ['manufacturers', 'core-3', 'prefix'],
      ['manufacturers', 'a core', 'word'],
      ['platforms', 'nos', 'word'],
      ['manufacturers', 'xcorex', 'part'],
    ]);
    const two = await search(root, 'core', '&kinds=manufacturers&limit=2');
    expect([found(two).length, two.more]).toEqual([2, ['manufacturers']]);
  });

  test('by serial number, asset tag, MAC address in any notation, and VLAN id', async () => {
    const device = await make('devices', {
      name: 'sw-9',
      siteId: red.sites,
      deviceTypeId: shared['device-types'],
      serial: 'FOX1234ABCD',
      assetTag: 'A-0042',
    });
    const macAddress = '00:1b:2c:3d:4e:66';
    await make('interfaces', { deviceId: device.id, name: 'eth0', macAddress });
    for (const q of ['fox1234abcd', 'a-0042', 'A-0042'])
      expect([q, found(await search(root, q))]).toEqual([q, [['devices', 'sw-9', 'exact']]]);
    for (const q of [macAddress, '001b.2c3d.4e66', '00-1B-2C-3D-4E-66', '001B2C-3D4E66'])
      expect([q, found(await search(root, q))]).toEqual([q, [['interfaces', 'eth0', 'exact']]]);
    expect(found(await search(root, '3031', '&kinds=vlans'))).toEqual([
      ['vlans', 'double-vlan', 'exact'],
    ]);
  });

  test('all words, wherever they are, and characters that mean something elsewhere', async () => {
    await make('manufacturers', { name: 'Acme 100%_(x) [y] \\d', description: 'of the north' });
    const label = 'Acme 100%_(x) [y] \\d';
    const inCatalogue = '&kinds=manufacturers';
    for (const q of ['north acme', '100%_(', '(x) [y]', '] \\d', ' acme   NORTH'])
      expect([q, found(await search(root, q, inCatalogue)).map((item) => item[1])]).toEqual([
        q,
        [label],
      ]);
    for (const q of ['north south', '100_%', 'acme.*'])
      expect(
        found(await search(root, q, inCatalogue)).filter(([, , match]) => match !== 'similar'),
      ).toEqual([]);
  });

  test('misspelled, if nothing contains the text; short texts are beginnings of names', async () => {
    await make('manufacturers', { name: 'Juniper' });
    const similar: SearchItem[] = (await search(root, 'junipper', '&kinds=manufacturers')).items;
    expect(similar).toMatchObject([{ label: 'Juniper', match: 'similar' }]);
    expect(found(await search(root, 'ju', '&kinds=manufacturers'))).toEqual([
      ['manufacturers', 'Juniper', 'prefix'],
    ]);
    expect(found(await search(root, 'ip', '&kinds=manufacturers'))).toEqual([]);
  });

  test('an unknown MAC address is not a misspelled one', async () => {
    const { macAddress } = await root
      .get<{ macAddress: string }>(`/api/inventory/interfaces/${red.interfaces}`)
      .expect(200);
    await root
      .put(`/api/inventory/interfaces/${red.interfaces}`, { macAddress: '02:00:00:00:ee:01' })
      .expect(200);
    for (const q of ['02:00:00:00:ee:02', '0200.0000.ee02'])
      expect([q, found(await search(root, q))]).toEqual([q, []]);
    await root.put(`/api/inventory/interfaces/${red.interfaces}`, { macAddress }).expect(200);
  });
});

describe('a search reads only what its caller may read', () => {
  /** Addresses of a tenant and a site; every tenth has the text. */
  const insert = (id: string, count: number) =>
    app.deps.db.transaction(async (trx) => {
      await trx.raw('SET LOCAL session_replication_role = replica');
      await trx.raw(
        `INSERT INTO ip_addresses (id, tenant_id, scope_site_id, address, status, dns_name)
         SELECT 'ipa_' || ? || n, ?, ?, '172.16.0.0'::inet + n, 'active', CASE n % 10 WHEN 0 THEN 'needle' ELSE 'hay' END || n
         FROM generate_series(1, ?::integer) AS n`,
        [id, id, id, count],
      );
    });
  const MANY = 20_000;
  const FEW = 200;
  beforeAll(async () => {
    await insert('many', MANY);
    await insert('few', FEW);
    await app.deps.db.raw('VACUUM ANALYZE ip_addresses');
  });
  afterAll(() => app.deps.db.raw(`DELETE FROM ip_addresses WHERE tenant_id IN ('many', 'few')`));

  const none: Scope = {
    kind: 'within',
    tenantIds: new Set(),
    siteIds: new Set(),
    deviceIds: new Set(),
  };
  const within = (ids: Partial<typeof none>): Scope => ({ ...none, ...ids });

  test.each([
    ['of a tenant', within({ tenantIds: new Set(['few']) })],
    ['of a site', within({ siteIds: new Set(['few']) })],
  ])('%s', async (_, inventory) => {
    const { db } = app.deps;
    const workflows = { actorId: 'ann', authorKey: 'few/ann', ownScope: none, names: ['ann'] };
    const sources = sourcesOf(
      {
        ...{ inventory, jobs: none, schedules: none, users: none, webhooks: none, backups: none },
        workflows: { ...workflows, read: none, approve: none, roles: [] },
      },
      new Set(['ip-addresses']),
    );
    for (const [q, isFound] of [
      ['needle', true],
      ['needle10 needle', true],
      ['eedlehay', false],
      ['n', false],
      ['17', true],
    ] as const) {
      const parts = { limit: 7, aroundLimit: 1, isThorough: true };
      const [branch] = branchesOf(parseSearch(q), sources, parts);
      const { sql, bindings } = assertDefined(branch, 'branch of addresses');
      const { rows } = await db.raw<{ rows: { 'QUERY PLAN': string }[] }>(
        `EXPLAIN (ANALYZE, TIMING OFF) ${sql}`,
        bindings,
      );
      const plan = rows.map((row) => row['QUERY PLAN']).join('\n');
      expect([q, plan]).toEqual([q, expect.not.stringMatching(/Seq Scan/)]);
      const read = [...plan.matchAll(/(?:\(actual rows=| by (?:Filter|Index Recheck): )(\d+)/g)];
      expect(read.length).toBeGreaterThan(0);
      if (read.some(([, rows]) => Number(rows) > FEW)) throw new Error(`${q} reads more:\n${plan}`);
      expect((await db.raw<{ rows: object[] }>(sql, bindings)).rows.length > 0).toBe(isFound);
    }
  });
});

test.each([
  ['Österreich', ['Österreich', 'österreich', 'ÖSTERREICH', 'sterre', 'Ö']],
  ['Århus nord', ['Århus', 'århus', 'ÅRHUS NORD', 'nord århus']],
  ['Москва-1', ['Москва', 'москва', 'МОСКВА', 'москва-1']],
  ['ΑΘΗΝΑ', ['αθηνα', 'Αθηνα', 'ΑΘΗΝΑ']],
])('%s is found in any letter case', async (name, texts) => {
  const { id } = await make('sites', { name });
  const user = await root
    .post<{ id: string }>('/api/users', {
      ...{ username: `person-${id}`, displayName: name, password: 'a long pass phrase' },
    })
    .expect(201);
  for (const text of texts) {
    const q = encodeURIComponent(text);
    const { items } = await root.get<SearchAnswer>(`/api/search?q=${q}&kinds=sites`).expect(200);
    expect([text, items.map((item) => item.id)]).toEqual([text, expect.arrayContaining([id])]);
    // Lists want three characters, and the words in their order.
    if (text.length < 3 || text.includes(' ')) continue;
    for (const path of [`/api/inventory/sites?q=${q}`, `/api/users?q=${q}&limit=200`]) {
      const list = await root.get<{ items: { id: string }[] }>(path).expect(200);
      expect(
        list.items.map((item) => item.id).filter((each) => [id, user.id].includes(each)),
      ).toHaveLength(1);
    }
  }
});

test('a kind that does not answer in time is named, and the others answer', async () => {
  const { deps } = app;
  const impatient = composeSearch(
    { ...deps, config: { ...deps.config, searchTimeoutMs: 250 } },
    deps.approvals,
  );
  const kinds = ['racks', 'tags'] as const;
  const caller = systemCaller('platform', 'test');
  const lock = await deps.db.transaction();
  try {
    await lock.raw('LOCK TABLE racks IN ACCESS EXCLUSIVE MODE');
    const { incomplete } = await impatient.find(
      caller,
      { q: 'core', kinds, limit: 6 },
      new AbortController().signal,
    );
    expect(incomplete).toContain('racks');
  } finally {
    await lock.rollback();
  }
});

test('what cannot be searched is refused', async () => {
  for (const [query, pointer] of [
    ['', '/q'],
    ['q=', '/q'],
    ['q=%20%20', '/q'],
    // Other white space, such as a non-breaking space.
    ['q=%C2%A0', '/q'],
    ['q=%E3%80%80%20%EF%BB%BF', '/q'],
    ['q=%E2%80%A8', '/q'],
    ['q=a&kinds=devices,robots', '/kinds'],
    ['q=a&kinds=', '/kinds'],
    ['q=a&limit=21', '/limit'],
    ['q=a%00b', '/q'],
    [`q=${'a'.repeat(201)}`, '/q'],
  ])
    expect(
      (await root.get<ProblemBody>(`/api/search?${query}`).expect(400)).errors?.[0]?.pointer,
    ).toBe(pointer);
  expect(SEARCH_KINDS.length).toBe(new Set(SEARCH_KINDS).size);
});

test('a text in another Unicode form than the stored name is found', async () => {
  const nfd = (text: string) => encodeURIComponent(text.normalize('NFD'));
  const name = 'Zürich-Ångström';
  await make('custom-fields', { resource: 'sites', name: 'contact', type: 'text' });
  const { id } = await make('sites', { name, customFields: { contact: 'José' } });
  const asSent = await make('sites', { name: 'Café-Nord'.normalize('NFD') });
  expect(asSent.name).toBe('Café-Nord'.normalize('NFD'));
  await make('locations', { name: 'Above', siteId: id });
  for (const text of ['Zürich-Ångström', 'ZÜRICH', 'ångström', 'zür'])
    for (const path of [`search?kinds=sites&q=${nfd(text)}`, `inventory/sites?q=${nfd(text)}`]) {
      const { items } = await root.get<{ items: { id: string }[] }>(`/api/${path}`).expect(200);
      expect([path, items.map((item) => item.id)]).toEqual([path, [id]]);
    }
  const idsOf = async (path: string) =>
    (await root.get<{ items: { id: string }[] }>(`/api/inventory/${path}`).expect(200)).items.map(
      (item) => item.id,
    );
  expect(await idsOf(`sites?name=${nfd(name)}`)).toEqual([id]);
  expect(await idsOf(`sites?name.not=${nfd(name)}`)).not.toContain(id);
  expect(await idsOf(`sites?customFields.contact=${nfd('José')}`)).toEqual([id]);
  expect(await idsOf(`locations?siteId.name=${nfd(name)}`)).toHaveLength(1);
  expect(await idsOf(`sites?name=${nfd('Café-Nord')}`)).toEqual([asSent.id]);
  expect(await idsOf(`sites?q=${nfd('café-n')}`)).toEqual([asSent.id]);
});
