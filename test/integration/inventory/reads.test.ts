import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import type { Static } from 'typebox';
import { assertDefined } from '../../../domain/shared/assert.ts';
import { RESOURCES } from '../../../domain/inventory/resources/index.ts';
import type { ChangeView } from '../../../api/inventory/schemas.ts';
import { startApp, type TestApp } from '../../support/app.ts';
import type { ProblemBody, TestClient } from '../../support/client.ts';
import {
  recordFactory,
  type BulkReport,
  type InventoryRecord,
  type RecordPage,
  type Validation,
  type WriteProblem,
} from '../../support/inventory.ts';
import { admin, createUser, type Page } from '../../support/users.ts';

let app: TestApp;
let root: TestClient;
beforeAll(async () => {
  app = await startApp({}, { idle: true });
  root = admin(app);
});
afterAll(() => app.stop());
const make = recordFactory(() => root);

type Named = { name?: string; cidr?: string; address?: string };
const namesOf = ({ items }: { items: Named[] }) =>
  items.map(({ name, cidr, address }) => name ?? cidr ?? address);
const names = async (path: string, client = root) =>
  namesOf(await client.get<Page<Named>>(path).expect(200));

async function listAll(path: string, client = root) {
  const found: (string | undefined)[] = [];
  let cursor: string | null = null;
  do {
    const page: Page<Named> = await client
      .get<Page<Named>>(`${path}${cursor === null ? '' : `&cursor=${cursor}`}`)
      .expect(200);
    found.push(...namesOf(page));
    cursor = page.nextCursor;
  } while (cursor !== null);
  return found;
}

describe('lists', () => {
  test('are sorted either way, page by page, without a gap or a double', async () => {
    const made = ['b', 'a', 'a b', 'Z', 'é', 'c'];
    for (const name of made) await make('regions', { name });
    const byName = await listAll('/api/inventory/regions?sort=name&limit=2');
    expect([...byName].sort()).toEqual([...made].sort());
    expect(await listAll('/api/inventory/regions?sort=-name&limit=2')).toEqual(
      [...byName].reverse(),
    );
    expect(await listAll('/api/inventory/regions?limit=4')).toEqual([...made].reverse());
    const networks = [
      '10.0.0.0/8',
      '10.0.0.0/16',
      '9.0.0.0/8',
      '10.0.1.0/24',
      '2001:db8::/32',
      '10.2.0.0/16',
    ];
    for (const cidr of networks) await make('prefixes', { cidr });
    expect(await listAll('/api/inventory/prefixes?sort=cidr&limit=1')).toEqual([
      '9.0.0.0/8',
      '10.0.0.0/8',
      '10.0.0.0/16',
      '10.0.1.0/24',
      '10.2.0.0/16',
      '2001:db8::/32',
    ]);
    for (const [query, found] of [
      ['within=10.0.0.0/16', ['10.0.0.0/16', '10.0.1.0/24']],
      ['contains=10.0.1.7', ['10.0.0.0/8', '10.0.0.0/16', '10.0.1.0/24']],
      ['contains=10.2.0.0/15', ['10.0.0.0/8']],
      ['q=10.0', ['10.0.0.0/8', '10.0.0.0/16', '10.0.1.0/24']],
      ['parentPrefixId=none', ['9.0.0.0/8', '10.0.0.0/8', '2001:db8::/32']],
      ['vrfId=global&cidr=2001:DB8::/32', ['2001:db8::/32']],
    ] as const) {
      expect([query, await listAll(`/api/inventory/prefixes?sort=cidr&${query}`)]).toEqual([
        query,
        found,
      ]);
    }
  });
  test('addresses are found whatever length they are kept with', async () => {
    for (const address of ['10.120.0.1/24', '10.120.0.2/16', '10.120.0.3'])
      await make('ip-addresses', { address });
    expect([...(await listAll('/api/inventory/ip-addresses?within=10.120.0.0/25'))].sort()).toEqual(
      ['10.120.0.1/24', '10.120.0.2/16', '10.120.0.3'],
    );
    expect(await listAll('/api/inventory/ip-addresses?within=10.120.0.2/32')).toEqual([
      '10.120.0.2/16',
    ]);
    expect([
      await names('/api/inventory/ip-addresses?address=10.120.0.1'),
      await names('/api/inventory/ip-addresses?address=10.120.0.1/24'),
      await names('/api/inventory/ip-addresses?address=10.120.0.1/25'),
    ]).toEqual([['10.120.0.1/24'], ['10.120.0.1/24'], []]);
  });
  test('VLANs by number, and by what is part of a name, whatever characters', async () => {
    for (const [vid, name] of [
      [10, 'a_bc'],
      [9, 'axbc'],
      [100, '50%'],
    ] as const)
      await make('vlans', { vid, name });
    expect(await listAll('/api/inventory/vlans?sort=vid&limit=1')).toEqual(['axbc', 'a_bc', '50%']);
    expect([
      await names('/api/inventory/vlans?q=A_b'),
      await names('/api/inventory/vlans?q=50%25'),
      await names('/api/inventory/vlans?vid=9'),
    ]).toEqual([['a_bc'], ['50%'], ['axbc']]);
  });
  test.each([
    'sort=colour',
    'limit=0',
    'cursor=x',
    'q=ab',
    'nothing=1',
    'within=10.0.0.1/8',
    'contains=zebra',
    `cursor=${Buffer.from(JSON.stringify(['inventory:prefixes:cidr', '["zebra","pfx_x"]'])).toString('base64url')}&sort=cidr`,
  ])('%s is 400', async (query) => {
    expect((await root.get(`/api/inventory/prefixes?${query}`)).status).toBe(400);
  });
  test('every resource answers its list, its export and its first page in every order', async () => {
    for (const { name, sortFields } of Object.values(RESOURCES)) {
      for (const sort of sortFields)
        for (const order of [sort, `-${sort}`])
          expect([name, (await root.get(`/api/inventory/${name}?sort=${order}`)).status]).toEqual([
            name,
            200,
          ]);
      expect([name, (await root.get(`/api/inventory/${name}/export`)).status]).toEqual([name, 200]);
      expect([name, (await root.get(`/api/inventory/${name}/none`)).status]).toEqual([name, 404]);
    }
  });
});

describe('scopes', () => {
  let site: InventoryRecord;
  let other: InventoryRecord;
  beforeAll(async () => {
    await make('tenants', { id: 'acme', name: 'Acme' });
    site = await make('sites', { name: 'acme1', tenantId: 'acme' });
    other = await make('sites', { name: 'plat1' });
    await make('manufacturers', { name: 'Maker' });
    await make('device-types', { manufacturerId: { name: 'Maker' }, model: 'x' });
    for (const [name, siteId] of [
      ['in', site.id],
      ['out', other.id],
    ])
      await make('devices', {
        name,
        siteId,
        deviceTypeId: { model: 'x' },
        tenantId: name === 'in' ? 'acme' : 'platform',
      });
  });
  test('a tenant reads its own and the catalogues, and writes neither elsewhere nor in the catalogues', async () => {
    const acme = app.client.as({ actor: 'ann', roles: 'operator', tenant: 'acme' });
    expect([
      await names('/api/inventory/sites', acme),
      await names('/api/inventory/devices', acme),
      await names('/api/inventory/manufacturers', acme),
      await names('/api/inventory/tenants', acme),
    ]).toEqual([['acme1'], ['in'], ['Maker'], ['Acme']]);
    expect((await acme.get(`/api/inventory/sites/${other.id}`)).status).toBe(404);
    expect((await acme.put(`/api/inventory/sites/${other.id}`, { description: 'x' })).status).toBe(
      404,
    );
    expect((await acme.delete(`/api/inventory/sites/${other.id}`)).status).toBe(404);
    expect((await acme.post('/api/inventory/manufacturers', { name: 'Mine' })).status).toBe(403);
    expect((await acme.post('/api/inventory/tenants', { id: 'acme2', name: 'Mine' })).status).toBe(
      403,
    );
    for (const [tenantId, where] of [
      ['platform', 'the platform'],
      ['unknown', 'tenant unknown'],
    ])
      expect(
        (
          await acme
            .post<ProblemBody>('/api/inventory/sites', { name: 'theirs', tenantId })
            .expect(403)
        ).detail,
      ).toBe(`Permission inventory:write is missing at ${where}.`);
    expect(
      (
        await root
          .post<ProblemBody>('/api/inventory/sites', { name: 'nowhere', tenantId: 'unknown' })
          .expect(400)
      ).errors,
    ).toMatchObject([{ pointer: '/tenantId', code: 'not_found' }]);
    expect((await recordFactory(() => acme)('sites', { name: 'mine' })).tenantId).toBe('acme');
    expect(
      (await acme.put(`/api/inventory/sites/${site.id}`, { tenantId: 'platform' })).status,
    ).toBe(403);
  });
  test('a conflict with what the caller may not read does not name it', async () => {
    const vrfId = (await make('vrfs', { name: 'shared', tenantId: 'acme' })).id;
    await make('prefixes', { cidr: '203.0.113.0/24', description: 'secret', vrfId });
    const acme = app.client.as({ actor: 'ann', roles: 'operator', tenant: 'acme' });
    const { conflicts } = await acme
      .post<WriteProblem>('/api/inventory/prefixes', { cidr: '203.0.113.0/24', vrfId })
      .expect(409);
    expect(conflicts).toEqual([
      {
        pointer: '/cidr',
        code: 'duplicate',
        message: 'conflicts with a record that you may not read; evict on VRF shared removes it',
        resource: null,
        id: null,
      },
    ]);
    const above = await acme
      .post<Validation>('/api/validation/inventory', {
        resource: 'prefixes',
        operation: 'create',
        record: { cidr: '203.0.112.0/23', vrfId },
      })
      .expect(200);
    expect(above.effects).toHaveLength(1);
  });
  test('a right at a site reaches its racks and devices, one at a device its interfaces, and no more', async () => {
    const atSite = await createUser(app, { roleId: 'operator', siteId: site.id });
    const devices = await root.get<RecordPage>('/api/inventory/devices?name=in').expect(200);
    const device = assertDefined(devices.items[0], 'device');
    const atDevice = await createUser(app, { roleId: 'operator', deviceId: device.id });
    expect([
      await names('/api/inventory/devices', atSite.client),
      await names('/api/inventory/devices', atDevice.client),
      await names('/api/inventory/sites', atDevice.client),
    ]).toEqual([['in'], ['in'], []]);
    const rack = await recordFactory(() => atSite.client)('racks', {
      name: 'r',
      siteId: site.id,
      tenantId: 'acme',
    });
    expect(rack.tenantId).toBe('acme');
    expect(
      (
        await atSite.client.post('/api/inventory/racks', {
          name: 'r',
          siteId: other.id,
          tenantId: 'acme',
        })
      ).status,
    ).toBe(403);
    expect(
      (
        await atDevice.client.post('/api/inventory/interfaces', {
          deviceId: device.id,
          name: 'eth0',
        })
      ).status,
    ).toBe(201);
    expect(
      (
        await atDevice.client.post('/api/inventory/racks', {
          name: 'q',
          siteId: site.id,
          tenantId: 'acme',
        })
      ).status,
    ).toBe(403);
    expect(await names('/api/inventory/interfaces', atSite.client)).toEqual(['eth0']);
  });
  test('a viewer validates and does not write; a stranger does neither', async () => {
    const viewer = app.client.as({ actor: 'vic', roles: 'viewer' });
    expect(
      (
        await viewer.post('/api/validation/inventory', {
          resource: 'regions',
          operation: 'create',
          record: { name: 'ci' },
        })
      ).status,
    ).toBe(200);
    for (const path of ['regions', 'bulk', 'import?resource=regions'])
      expect((await viewer.post(`/api/inventory/${path}`, { name: 'x' })).status).toBe(403);
    const nobody = app.client.as({ actor: 'n', roles: 'unknown' });
    expect(
      (
        await nobody.post('/api/validation/inventory', {
          resource: 'regions',
          operation: 'create',
          record: {},
        })
      ).status,
    ).toBe(403);
  });
});

describe('names', () => {
  test('of several alike the one at the same tenant or site is meant', async () => {
    const [ours, theirs] = [
      await make('sites', { name: 'par1' }),
      await make('sites', { name: 'par1', tenantId: 'acme' }),
    ];
    const rack = await make('racks', { name: 'row1', siteId: { name: 'par1' } });
    const other = await make('racks', { name: 'row1', siteId: { name: 'par1' }, tenantId: 'acme' });
    expect([rack.siteId, other.siteId]).toEqual([ours.id, theirs.id]);
    const device = await make('devices', {
      name: 'named',
      siteId: theirs.id,
      rackId: { name: 'row1' },
      deviceTypeId: { model: 'x' },
      tenantId: 'acme',
    });
    expect(device.rackId).toBe(other.id);
  });
});

test('a change that changes nothing makes no version, no entry and no event', async () => {
  const region = await make('regions', { name: 'still', tags: [] });
  const path = `/api/inventory/regions/${region.id}`;
  expect(await root.put(path, { name: 'still', description: '' }).expect(200)).toEqual(region);
  expect((await root.get<Page<unknown>>(`${path}/changes`).expect(200)).items).toHaveLength(1);
  const bulk = await root
    .post<BulkReport>('/api/inventory/bulk', {
      mutations: [
        { resource: 'regions', operation: 'update', record: { id: region.id, name: 'still' } },
      ],
    })
    .expect(200);
  expect(bulk.results).toMatchObject([{ outcome: 'unchanged', id: region.id, version: 1 }]);
  expect(bulk.counts).toMatchObject({ updated: 0, unchanged: 1 });
});

test('what is asked for is not chosen by the one who asks', async () => {
  const pool = await make('prefixes', { cidr: '10.199.0.0/24', allocationMode: 'pool' });
  const { errors } = await root
    .post<ProblemBody>(`/api/inventory/prefixes/${pool.id}/allocate`, {
      kind: 'address',
      record: { address: '10.199.0.9' },
    })
    .expect(400);
  expect(errors?.[0]?.pointer).toBe('/record/address');
});

describe('bulk', () => {
  test('all or none, with every reason at its mutation', async () => {
    const mutations = [
      { resource: 'regions', operation: 'create', record: { name: 'bulk1' } },
      { resource: 'regions', operation: 'create', record: { name: 'bulk1' } },
      { resource: 'regions', operation: 'create', record: { parentId: 'reg_none' } },
    ];
    const { errors } = await root
      .post<ProblemBody>('/api/inventory/bulk', { mutations })
      .expect(400);
    expect(errors?.map(({ pointer }) => pointer)).toEqual([
      '/mutations/2/record/name',
      '/mutations/2/record/parentId',
    ]);
    expect(await names('/api/inventory/regions?name=bulk1')).toEqual([]);
    const { conflicts } = await root
      .post<WriteProblem>('/api/inventory/bulk', { mutations: mutations.slice(0, 2) })
      .expect(409);
    expect(conflicts[0]?.pointer).toBe('/mutations/1/record/name');
    const writeEach = (some: object[]) =>
      root.post<BulkReport>('/api/inventory/bulk', { mode: 'each', mutations: some }).expect(200);
    const { counts, results } = await writeEach(mutations);
    expect([counts, results.map(({ outcome }) => outcome)]).toEqual([
      { created: 1, updated: 0, unchanged: 0, deleted: 0, invalid: 1, conflict: 1 },
      ['created', 'conflict', 'invalid'],
    ]);
    expect((await writeEach(mutations.slice(1))).counts).toMatchObject({
      conflict: 1,
      invalid: 1,
    });
  });
  test('the same key answers the same, once', async () => {
    const body = {
      mutations: [{ resource: 'regions', operation: 'create', record: { name: 'once' } }],
    };
    const [first, again] = [
      await root.post('/api/inventory/bulk', body, { 'idempotency-key': 'bulk-1' }),
      await root.post('/api/inventory/bulk', body, { 'idempotency-key': 'bulk-1' }),
    ];
    expect([again.body, again.headers.get('idempotent-replayed')]).toEqual([first.body, 'true']);
  });
});

describe('history', () => {
  test('every change is listed with what it changed, and ?at= shows the record as it was', async () => {
    const made = await make('vlan-groups', { name: 'h1' });
    const path = `/api/inventory/vlan-groups/${made.id}`;
    const changed = await root.put<InventoryRecord>(path, { name: 'h2', minVid: 5 }).expect(200);
    await root.delete(path);
    const { items } = await root
      .get<Page<Static<typeof ChangeView>>>(`${path}/changes`)
      .expect(200);
    expect(
      items.map(({ action, version, changes, actorId }) => [
        action,
        version,
        actorId,
        changes.length,
      ]),
    ).toEqual([
      ['delete', 2, 'root', 8],
      ['update', 2, 'root', 2],
      ['create', 1, 'root', 8],
    ]);
    expect(items[1]?.changes).toEqual([
      { field: 'name', before: 'h1', after: 'h2' },
      { field: 'minVid', before: 1, after: 5 },
    ]);
    const at = (time: string) => root.get(`${path}?at=${time}`);
    expect((await at(made.createdAt)).body).toEqual(made);
    expect((await at(changed.updatedAt)).body).toEqual(changed);
    expect([
      (await at('2020-01-01T00:00:00Z')).status,
      (await at('2099-01-01T00:00:00Z')).status,
      (await root.get(path)).status,
    ]).toEqual([404, 404, 404]);
    const events = await root
      .as({ actor: 'root', roles: 'platform-admin', tenant: 'platform' })
      .get<Page<{ type: string; data: { version: number; changed: string[] } }>>(
        `/api/events?subject=${made.id}`,
      )
      .expect(200);
    expect(events.items.map(({ type, data }) => [type, data.version, data.changed])).toEqual([
      ['inventory.vlan-group.deleted', 2, []],
      ['inventory.vlan-group.updated', 2, ['name', 'minVid']],
      ['inventory.vlan-group.created', 1, []],
    ]);
  });
  test('a version is later than the one before it, also than one of a commit that began later', async () => {
    const made = await make('regions', { name: 'early' });
    const later = new Date(Date.now() + 60_000).toISOString();
    await app.deps
      .db('regions')
      .where({ id: made.id })
      .update({ created_at: later, updated_at: later });
    const path = `/api/inventory/regions/${made.id}`;
    const changed = await root.put<InventoryRecord>(path, { name: 'late' }).expect(200);
    expect(Date.parse(changed.updatedAt)).toBe(Date.parse(later) + 1);
    expect(await names(`/api/inventory/regions?createdAt.gte=${later}`)).toEqual(['late']);
    const nameAt = async (at: string) =>
      (await root.get<Named>(`${path}?at=${at}`).expect(200)).name;
    expect(await nameAt(changed.updatedAt)).toBe('late');
    await root.delete(path).expect(204);
    expect(await nameAt(changed.updatedAt)).toBe('late');
  });
  test('the history of a record is hidden from callers who could not read it', async () => {
    const made = await make('regions', { name: 'past' });
    const acme = app.client.as({ actor: 'ann', roles: 'operator', tenant: 'acme' });
    const path = `/api/inventory/regions/${made.id}`;
    for (const query of ['', `?at=${made.createdAt}`, '/changes'])
      expect((await acme.get(`${path}${query}`)).status).toBe(404);
    const moved = await root.put<InventoryRecord>(path, { tenantId: 'acme' }).expect(200);
    expect([
      (await acme.get(`${path}?at=${made.createdAt}`)).status,
      (await acme.get(`${path}?at=${moved.updatedAt}`)).status,
    ]).toEqual([404, 200]);
    const { items } = await acme.get<Page<{ action: string }>>(`${path}/changes`).expect(200);
    expect(items.map(({ action }) => action)).toEqual(['create']);
  });
});

type Tree = {
  prefix: { id: string };
  children: { cidr: string }[];
  free: string[];
  exact: boolean;
  nextCursor: string | null;
};

describe('space', () => {
  test('usage and tree: children, and the free networks between, page by page', async () => {
    const top = await make('prefixes', { cidr: '172.16.0.0/16' });
    for (const cidr of ['172.16.0.0/24', '172.16.1.0/24', '172.16.128.0/17'])
      await make('prefixes', { cidr });
    await make('ip-addresses', { address: '172.16.9.9' });
    await make('ip-ranges', { startAddress: '172.16.1.250', endAddress: '172.16.2.3' });
    const path = `/api/inventory/prefixes/${top.id}`;
    expect((await root.get(`${path}/usage`)).body).toEqual({
      size: '65536',
      used: '33285',
      free: '32251',
      percent: 50.78,
      children: 3,
      addresses: 1,
      ranges: 1,
    });
    const whole = await root.get<Tree>(`${path}/tree`).expect(200);
    expect([whole.prefix.id, whole.children.map(({ cidr }) => cidr), whole.free]).toEqual([
      top.id,
      ['172.16.0.0/24', '172.16.1.0/24', '172.16.128.0/17'],
      expect.any(Array),
    ]);
    // What neither a child nor the range nor the address takes, in the fewest networks.
    expect(whole.free).toEqual([
      '172.16.2.4/30',
      '172.16.2.8/29',
      '172.16.2.16/28',
      '172.16.2.32/27',
      '172.16.2.64/26',
      '172.16.2.128/25',
      '172.16.3.0/24',
      '172.16.4.0/22',
      '172.16.8.0/24',
      '172.16.9.0/29',
      '172.16.9.8/32',
      '172.16.9.10/31',
      '172.16.9.12/30',
      '172.16.9.16/28',
      '172.16.9.32/27',
      '172.16.9.64/26',
      '172.16.9.128/25',
      '172.16.10.0/23',
      '172.16.12.0/22',
      '172.16.16.0/20',
      '172.16.32.0/19',
      '172.16.64.0/18',
    ]);
    expect(whole.exact).toBe(true);
    const pages: Tree[] = [];
    for (let cursor: string | null = ''; cursor !== null;) {
      const query: string = cursor === '' ? '' : `&cursor=${cursor}`;
      const page = await root.get<Tree>(`${path}/tree?limit=1${query}`).expect(200);
      pages.push(page);
      cursor = page.nextCursor;
    }
    expect([pages.length, pages.flatMap(({ free }) => free)]).toEqual([3, whole.free]);
    const wide = await make('prefixes', { cidr: '2001:db8:1::/48' });
    await make('prefixes', { cidr: '2001:db8:1::/50' });
    expect((await root.get(`/api/inventory/prefixes/${wide.id}/usage`)).body).toMatchObject({
      size: (2n ** 80n).toString(),
      used: (2n ** 78n).toString(),
      percent: 25,
    });
  });
});

type PrefixMap = { network: string; prefixes: { cidr: string }[]; complete: boolean };

test('a map has the prefixes of all levels, the largest first, or those of a part', async () => {
  const top = await make('prefixes', { cidr: '172.18.0.0/16' });
  for (const cidr of ['172.18.1.0/24', '172.18.0.0/24', '172.18.0.128/25', '172.18.128.0/17'])
    await make('prefixes', { cidr, status: 'reserved' });
  const path = `/api/inventory/prefixes/${top.id}/map`;
  const cidrsOf = ({ prefixes }: PrefixMap) => prefixes.map(({ cidr }) => cidr);
  const whole = await root.get<PrefixMap>(path).expect(200);
  expect(cidrsOf(whole)).toEqual([
    '172.18.128.0/17',
    '172.18.0.0/24',
    '172.18.1.0/24',
    '172.18.0.128/25',
  ]);
  expect(whole).toMatchObject({
    network: '172.18.0.0/16',
    complete: true,
    prefixes: Array(4).fill({ id: expect.stringMatching(/^pfx_/), status: 'reserved' }),
  });
  const part = await root.get<PrefixMap>(`${path}?within=172.18.0.0/24`).expect(200);
  expect([part.network, cidrsOf(part)]).toEqual([
    '172.18.0.0/24',
    ['172.18.0.0/24', '172.18.0.128/25'],
  ]);
  for (const [within, code] of [
    ['172.18.0.1/24', 'host_bits'],
    ['172.16.0.0/15', 'range'],
    ['2001:db8::/32', 'range'],
    ['x', 'cidr'],
  ] as const) {
    const { errors } = await root.get<ProblemBody>(`${path}?within=${within}`).expect(400);
    expect([within, errors]).toMatchObject([within, [{ pointer: '/within', code }]]);
  }
});

test('where If-Match is required, a change without it is 428', async () => {
  const strict = await startApp({ HOLDFAST_REQUIRE_IF_MATCH: 'true' }, { idle: true });
  const client = admin(strict);
  const { id } = await recordFactory(() => client)('regions', { name: 'r' });
  const path = `/api/inventory/regions/${id}`;
  expect([
    (await client.put(path, {})).status,
    (await client.delete(path)).status,
    (await client.put(path, {}, { 'if-match': '"1"' })).status,
  ]).toEqual([428, 428, 200]);
  await strict.stop();
});
