import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { listRecords } from '../../../db/inventory/records.ts';
import { columnKindOf } from '../../../domain/inventory/lists.ts';
import { RESOURCES } from '../../../domain/inventory/resources/index.ts';
import { assertDefined } from '../../../domain/shared/assert.ts';
import { pageOf, type ListKey } from '../../../domain/shared/lists.ts';
import { startApp, type TestApp } from '../../support/app.ts';
import type { ProblemBody, TestClient } from '../../support/client.ts';
import { propertyRuns } from '../../support/effort.ts';
import { recordFactory, type InventoryRecord, type RecordPage } from '../../support/inventory.ts';
import { answerOf, expectedFacet, expectedIds, questions } from '../../support/listModel.ts';
import { admin, createUser } from '../../support/users.ts';

/** The filters, orders and counts that all lists have, at one with fields of most kinds. */
let app: TestApp;
let root: TestClient;
const make = recordFactory(() => root);
const ACME = { actor: 'ann', roles: 'operator', tenant: 'acme' };
const path = '/api/inventory/interfaces';
let ports: InventoryRecord[];
beforeAll(async () => {
  app = await startApp({}, { idle: true });
  root = admin(app);
  await make('tenants', { id: 'acme', name: 'Acme' });
  const manufacturerId = (await make('manufacturers', { name: 'Maker' })).id;
  const deviceTypeId = (await make('device-types', { manufacturerId, model: 'x' })).id;
  const devices: string[] = [];
  for (const tenantId of ['acme', 'platform']) {
    const site = await make('sites', { name: `ports-${tenantId}`, tenantId });
    for (const name of ['one', 'two'])
      devices.push((await make('devices', { name, siteId: site.id, deviceTypeId, tenantId })).id);
  }
  for (const id of ['core', 'edge']) await make('tags', { id, name: id });
  await make('custom-fields', { resource: 'interfaces', name: 'circuit', type: 'text' });
  await make('custom-fields', { resource: 'interfaces', name: 'rank', type: 'integer' });
  const mutations = Array.from({ length: 48 }, (_, i) => ({
    resource: 'interfaces',
    operation: 'create',
    record: {
      deviceId: devices[i % devices.length],
      name: `p${String(i % 7)}x${String(i).padStart(2, '0')}`,
      kind: ['copper', 'fiber', 'virtual'][i % 3],
      enabled: i % 5 !== 0,
      ...(i % 4 !== 0 && { speedMbps: (i % 3) * 1_000 + 100 }),
      tags: [...(i % 2 === 0 ? ['core'] : []), ...(i % 3 === 0 ? ['edge'] : [])],
      ...(i % 3 !== 0 && { mode: i % 2 === 0 ? 'access' : 'tagged' }),
      customFields: { ...(i % 6 === 0 && { circuit: `c${String(i % 4)}` }), rank: i % 4 },
    },
  }));
  await root.post('/api/inventory/bulk', { mutations }).expect(200);
  const { items } = await root.get<RecordPage>(`${path}?limit=200`).expect(200);
  ports = items.filter(({ name }) => /^p\dx/.test(String(name)));
});
const idsOf = async (query: string, client = root) =>
  (await client.get<RecordPage>(`${path}?limit=200&${query}`).expect(200)).items.map(
    ({ id }) => id,
  );

test('pages, counts and facets agree with the records that a caller may read', async () => {
  const facets = ['kind', 'enabled', 'mode', 'deviceId'];
  const all = (await root.get<RecordPage>(`${path}?limit=200`).expect(200)).items;
  const arbitrary = fc.record({
    question: questions({
      several: {
        kind: ['copper', 'fiber', 'virtual', 'lag'],
        mode: ['access', 'tagged', 'none'],
        speedMbps: ['100', '1100', 'none'],
        macAddress: ['none'],
        deviceId: [...new Set(ports.map(({ deviceId }) => String(deviceId)))],
      },
      ranges: { speedMbps: [100, 1_100, 2_000] },
      sorts: ['createdAt', 'name'],
    }),
    limit: fc.constantFrom(3, 7, 200),
    tenant: fc.boolean(),
  });
  await fc.assert(
    fc.asyncProperty(arbitrary, async ({ question, limit, tenant }) => {
      const client = tenant ? app.client.as(ACME) : root;
      const visible = all.filter(({ tenantId }) => !tenant || tenantId === 'acme');
      const ids = expectedIds(visible, question);
      expect(await answerOf(client, path, question, { limit, facets })).toEqual({
        ids,
        count: { value: ids.length, exact: true },
        facets: Object.fromEntries(
          facets.map((field) => [field, expectedFacet(visible, question, field)]),
        ),
      });
    }),
    { numRuns: propertyRuns(25) },
  );
});
test('operators can be written as in a formula, and values repeated', async () => {
  const fast = ports.filter(({ speedMbps }) => Number(speedMbps ?? 0) >= 1_100);
  expect(await idsOf('speedMbps%3E=1100')).toEqual(fast.map(({ id }) => id));
  expect(await idsOf('speedMbps>=1100&kind=fiber&kind=copper')).toEqual(
    fast.filter(({ kind }) => kind !== 'virtual').map(({ id }) => id),
  );
  expect(await idsOf('speedMbps>=1100&kind!=virtual')).toEqual(
    await idsOf('speedMbps.gte=1100&kind=fiber,copper'),
  );
  expect(await idsOf('speedMbps=1100,2100')).toEqual(fast.map(({ id }) => id));
  expect(await idsOf('speedMbps!=1100,2100&speedMbps>=1')).toEqual(
    ports.filter(({ speedMbps }) => speedMbps === 100).map(({ id }) => id),
  );
  const [newest] = ports;
  expect(
    await idsOf(`createdAt>=${assertDefined(newest, 'port').createdAt}&id=${ports[3]?.id ?? ''}`),
  ).toEqual([ports[3]?.id]);
  expect(await idsOf('createdAt<=2020-01-01T00:00:00Z')).toEqual([]);
});
test('references are named, and custom fields filter', async () => {
  const acme = app.client.as(ACME);
  expect((await idsOf('deviceId.name=one')).length).toBe(24);
  expect((await idsOf('deviceId.name=one', acme)).length).toBe(12);
  expect(await idsOf('siteId.name=ports-platform', acme)).toEqual([]);
  expect(await idsOf('customFields.circuit=c2')).toEqual(
    ports
      .filter(({ customFields }) => (customFields as { circuit?: string }).circuit === 'c2')
      .map(({ id }) => id),
  );
  expect(await idsOf('customFields[rank]=3&customFields.circuit=c2')).toEqual([]);
  expect((await idsOf('customFields[rank]=3')).length).toBe(12);
});
test('a custom field is filtered by a text as long as it may be', async () => {
  await make('custom-fields', { resource: 'vrfs', name: 'notes', type: 'text' });
  const notes = 'n'.repeat(2_000);
  const { id } = await make('vrfs', { name: 'long', customFields: { notes } });
  const found = await root
    .get<RecordPage>(`/api/inventory/vrfs?customFields.notes=${notes}`)
    .expect(200);
  expect(found.items.map((vrf) => vrf.id)).toEqual([id]);
});
test('custom fields are excluded, and may be missing', async () => {
  const where = (isWanted: (circuit: string | undefined) => boolean) =>
    ports
      .filter(({ customFields }) => isWanted((customFields as { circuit?: string }).circuit))
      .map(({ id }) => id);
  const excluded = where((circuit) => circuit !== 'c2');
  for (const query of ['customFields.circuit!=c2', 'customFields[circuit.not]=c2'])
    expect(await idsOf(query)).toEqual(excluded);
  expect(await idsOf('customFields.circuit=none')).toEqual(where((circuit) => !circuit));
  expect(await idsOf('customFields.circuit=none&customFields.circuit=c0')).toEqual(
    where((circuit) => !circuit || circuit === 'c0'),
  );
  expect(await idsOf('customFields.circuit.not=none')).toEqual(
    where((circuit) => Boolean(circuit)),
  );
  expect(await idsOf('customFields.circuit.not=none&count=true')).toEqual(
    where((circuit) => Boolean(circuit)),
  );
});
test('a choice of a custom field that is called none is filtered as a choice', async () => {
  const field = { resource: 'vrfs', choices: ['none', 'basic'] };
  await make('custom-fields', { ...field, name: 'support', type: 'choice' });
  await make('custom-fields', { ...field, name: 'links', type: 'choices' });
  await make('custom-fields', { resource: 'vrfs', name: 'plain', type: 'text' });
  const chosen = { support: 'none', links: ['none'], plain: 'none' };
  const withNone = await make('vrfs', { name: 'with none', customFields: chosen });
  const basic = { support: 'basic', links: ['basic'], plain: 'x' };
  const withBasic = await make('vrfs', { name: 'with basic', customFields: basic });
  const without = await make('vrfs', { name: 'without', customFields: {} });
  const vrfsWith = async (query: string) =>
    (await root.get<RecordPage>(`/api/inventory/vrfs?limit=200&${query}`).expect(200)).items.map(
      ({ id }) => id,
    );
  for (const name of ['support', 'links']) {
    expect(await vrfsWith(`customFields.${name}=none`)).toEqual([withNone.id]);
    expect(await vrfsWith(`customFields.${name}.not=none`)).not.toContain(withNone.id);
    expect(await vrfsWith(`customFields.${name}.not=none`)).toContain(without.id);
  }
  expect(await vrfsWith('customFields.plain=none')).toContain(without.id);
  expect(await vrfsWith('customFields.plain=none')).not.toContain(withBasic.id);
});
test('tags: one of them, all of them, none of them', async () => {
  const where = (isWanted: (tags: readonly string[]) => boolean) =>
    ports.filter(({ tags }) => isWanted(tags as string[])).map(({ id }) => id);
  expect(await idsOf('tag=core')).toEqual(where((tags) => tags.includes('core')));
  expect(await idsOf('tag=core,edge')).toEqual(where((tags) => tags.length > 0));
  expect(await idsOf('tag.all=core,edge')).toEqual(where((tags) => tags.length === 2));
  expect(await idsOf('tag!=core,edge')).toEqual(where((tags) => tags.length === 0));
  expect(await idsOf('tag=core&tag.not=edge')).toEqual(
    where((tags) => tags.length === 1 && tags[0] === 'core'),
  );
});
test('a range that ends outside of a network is not within it', async () => {
  await make('prefixes', { cidr: '10.88.0.0/16' });
  const range = (startAddress: string, endAddress: string) =>
    make('ip-ranges', { startAddress, endAddress });
  const inside = await range('10.88.1.10', '10.88.1.20');
  await range('10.88.1.200', '10.88.2.9');
  const upToEnd = await range('10.88.1.100', '10.88.1.199');
  const query = 'within=10.88.1.0/24&sort=createdAt&count=true';
  const page = await root.get<RecordPage>(`/api/inventory/ip-ranges?${query}`).expect(200);
  expect(page).toMatchObject({
    items: [{ id: inside.id }, { id: upToEnd.id }],
    count: { value: 2 },
  });
});
test('an address without a length names the address of a reference', async () => {
  const [{ id: deviceId }] = (
    await root.get<RecordPage>('/api/inventory/devices?limit=1').expect(200)
  ).items as [InventoryRecord];
  const interfaceId = (await make('interfaces', { deviceId, name: 'loop', kind: 'virtual' })).id;
  const address = '192.0.2.7/24';
  const primaryIp4Id = (await make('ip-addresses', { address, interfaceId })).id;
  await root.put(`/api/inventory/devices/${deviceId}`, { primaryIp4Id }).expect(200);
  for (const [named, ids] of [
    ['192.0.2.7', [deviceId]],
    ['192.0.2.7/24', [deviceId]],
    ['192.0.2.7/25', []],
  ] as const) {
    const found = `/api/inventory/devices?primaryIp4Id.address=${named}`;
    const { items } = await root.get<RecordPage>(found).expect(200);
    expect([named, items.map(({ id }) => id)]).toEqual([named, ids]);
  }
});
test('custom fields of a tenant filter also for a reader at a site or a device', async () => {
  const acme = app.client.as({ actor: 'ann', roles: 'platform-admin', tenant: 'acme' });
  await acme
    .post('/api/inventory/custom-fields', { resource: 'devices', name: 'color', type: 'text' })
    .expect(201);
  const devices = '/api/inventory/devices';
  const [device] = (await acme.get<RecordPage>(`${devices}?name=one`).expect(200)).items as [
    InventoryRecord,
  ];
  await acme.put(`${devices}/${device.id}`, { customFields: { color: 'red' } }).expect(200);
  for (const at of [{ siteId: String(device.siteId) }, { deviceId: device.id }]) {
    const { client } = await createUser(app, { roleId: 'viewer', ...at });
    const { items } = await client.get<RecordPage>(`${devices}?customFields.color=red`).expect(200);
    expect(items.map(({ id }) => id)).toEqual([device.id]);
  }
  await app.client
    .as({ actor: 'bea', roles: 'viewer', tenant: 'blue' })
    .get(`${devices}?customFields.color=red`)
    .expect(400);
});
test('a query chooses the fields of the records', async () => {
  const { items } = await root.get<RecordPage>(`${path}?fields=name,kind&limit=1`).expect(200);
  expect(items.map((item) => Object.keys(item).sort())).toEqual([['id', 'kind', 'name']]);
});
test('a cursor continues the same filter in the same order only', async () => {
  const { nextCursor } = await root
    .get<RecordPage>(`${path}?kind=fiber&sort=name&limit=2`)
    .expect(200);
  const cursor = assertDefined(nextCursor, 'cursor');
  for (const [query, status] of [
    ['kind=fiber&sort=name', 200],
    ['kind=fiber&sort=name&count=true&fields=name&limit=1', 200],
    ['kind=copper&sort=name', 400],
    ['kind=fiber&sort=-name', 400],
    ['sort=name', 400],
  ] as const)
    expect([query, (await root.get(`${path}?${query}&cursor=${cursor}`)).status]).toEqual([
      query,
      status,
    ]);
});
test.each([
  ['nothing.not=1', '/nothing.not'],
  ['nothing!=1', '/nothing!'],
  ['name.gte=a', '/name.gte'],
  ['speedMbps.gte=fast', '/speedMbps.gte'],
  ...['0x10', '1e3', '%205', '5%20', '%2B5', '5.0', '', '1_000', '٣'].flatMap((number) => [
    [`speedMbps.gte=${number}`, '/speedMbps.gte'],
    [`speedMbps=${number}`, '/speedMbps/0'],
    [`limit=${number}`, '/limit'],
  ]),
  ['customFields.rank=0x1', '/customFields/rank'],
  ['speedMbps.gte=1&speedMbps.gte=2', '/speedMbps.gte'],
  ['createdAt.gte=yesterday', '/createdAt.gte'],
  ['createdAt.gte=2026-01-01T23:59:60Z', '/createdAt.gte'],
  ['createdAt=2026-01-01T00:00:00Z', '/createdAt'],
  ['kind=', '/kind/0'],
  ['kind=copper,tin', '/kind/1'],
  [`id=${Array.from({ length: 100 }, () => 'int_01jd0cmxk5e5v8kyzwq0q8s3rt').join(',')}`, '/id'],
  ['macAddress=zebra', '/macAddress'],
  ['customFields.colour=red', '/customFields/colour'],
  ['customFields.rank=high', '/customFields/rank'],
  ['customFields.Rank=1', '/customFields/Rank'],
  ['facets=name', '/facets/0'],
  ['fields=colour', '/fields/0'],
  ['count=perhaps', '/count'],
  ['sort=kind', '/sort'],
  ['q=abc&q=def', '/q'],
])('%s is 400 at %s', async (query, pointer) => {
  const { errors = [] } = await root.get<ProblemBody>(`${path}?${query}`).expect(400);
  expect(errors.map((error) => error.pointer)).toEqual([pointer]);
});

describe('a page of large records ends early', () => {
  const SIZE = 400_000;
  const portIds = () => ports.map(({ id }) => id).sort();
  const MAX_READ = 8 * 1_048_576 + 4 * SIZE;

  // As a release without a limit of custom fields has stored them.
  beforeAll(async () => {
    const custom_fields = JSON.stringify({ circuit: 'x'.repeat(SIZE), rank: 1 });
    await app.deps.db('interfaces').whereIn('id', portIds()).update({ custom_fields });
  });

  /** The ids on each page of a list, and the size of the largest result of the database. */
  async function pagesOf(list: string) {
    let largest = 0;
    const onRead = (response: unknown) => {
      largest = Math.max(largest, JSON.stringify(response ?? null).length);
    };
    app.deps.db.on('query-response', onRead);
    const pages: string[][] = [];
    try {
      for (let cursor: string | null = ''; cursor !== null;) {
        const page: RecordPage = await root
          .get<RecordPage>(`${list}limit=200${cursor && `&cursor=${cursor}`}`)
          .expect(200);
        pages.push(page.items.map(({ id }) => id));
        cursor = page.nextCursor;
      }
    } finally {
      app.deps.db.removeListener('query-response', onRead);
    }
    return { pages, largest };
  }

  test.each(['', 'sort=-name&'])('of records (%s)', async (order) => {
    const { pages, largest } = await pagesOf(`${path}?tag=core,edge&${order}`);
    const tagged = ports.filter(({ tags }) => (tags as string[]).length > 0);
    expect(pages.map(({ length }) => length)).toEqual([20, tagged.length - 20]);
    expect(pages.flat().sort()).toEqual(tagged.map(({ id }) => id).sort());
    expect(largest).toBeLessThan(MAX_READ);
  });

  test('of records in the order of a field without a value in some', async () => {
    const sort = { ...columnKindOf(RESOURCES.interfaces, 'speedMbps'), descending: false };
    const pages: string[][] = [];
    let after: ListKey | undefined;
    do {
      const { items, next } = await listRecords(
        app.deps.db,
        RESOURCES.interfaces,
        { kind: 'everywhere' },
        {},
        { ...pageOf(200, after), sort },
      );
      pages.push(items.map(({ id }) => id));
      after = next ?? undefined;
    } while (after);
    for (const page of pages) expect(page.length).toBeLessThanOrEqual(24);
    expect(new Set(pages.flat()).size).toBe(pages.flat().length);
    expect(pages.flat()).toEqual(expect.arrayContaining(portIds()));
  });

  test('of the audit log, and of the changes of one record', async () => {
    const { id } = assertDefined(ports[0], 'port');
    for (let i = 0; i < 15; i++)
      await root.put(`${path}/${id}`, { description: `change ${i}` }).expect(200);
    for (const list of [`${path}/${id}/changes?`, `/api/audit?subjectId=${id}&`]) {
      const { pages, largest } = await pagesOf(list);
      // Each has the record before and after the change; the first one created it.
      expect(pages.map(({ length }) => length)).toEqual([10, 6]);
      expect(new Set(pages.flat()).size).toBe(16);
      expect(largest).toBeLessThan(MAX_READ);
    }
  });
});

afterAll(() => app.stop());

test('a list that is sorted by any number can be continued and filtered', async () => {
  const doubles = fc.double({ min: -180, max: 180, noNaN: true });
  const longitudes = [
    ...[-0.0014770000000012828, 1e-7, -2.5e-300, 5e-324],
    ...fc.sample(doubles, { numRuns: 20, seed: 7 }),
  ];
  const mutations = longitudes.map((longitude, i) => ({
    resource: 'sites',
    operation: 'create',
    record: { name: `there ${i}`, longitude, latitude: 1, description: 'with longitude' },
  }));
  await root.post('/api/inventory/bulk', { mutations }).expect(200);
  const found: unknown[] = [];
  let cursor: string | null = '';
  while (cursor !== null) {
    const page: RecordPage = await root
      .get<RecordPage>(
        `/api/inventory/sites?latitude=1&sort=longitude&limit=1&cursor=${cursor}`.replace(
          /&cursor=$/,
          '',
        ),
      )
      .expect(200);
    found.push(...page.items.map(({ longitude }) => longitude));
    cursor = page.nextCursor;
  }
  const numbers = found as number[];
  expect(numbers.map(String)).toEqual(
    longitudes.map((each) => String(each)).sort((a, b) => Number(a) - Number(b)),
  );
  for (const longitude of numbers) {
    const filter = `longitude=${encodeURIComponent(JSON.stringify(longitude))}&latitude=1`;
    const { items } = await root.get<RecordPage>(`/api/inventory/sites?${filter}`).expect(200);
    expect(items.map((each) => each.longitude)).toContain(longitude);
  }
});

test('a record of a long import is in the list of the time at which its commit began', async () => {
  const { id } = await make('regions', { name: 'imported' });
  const began = new Date(Date.now() - 10 * 60_000).toISOString();
  await app.deps.db('regions').where({ id }).update({ created_at: began, updated_at: began });
  const listed = async (filter: string) => {
    const query = `/api/inventory/regions?createdAt.${filter}=${began}`;
    return (await root.get<RecordPage>(query).expect(200)).items.map((each) => each.id);
  };
  expect([await listed('lte'), await listed('lt'), await listed('gte')]).toEqual([[id], [], [id]]);
});

test('a range that begins or ends between two milliseconds has the records of those inside it', async () => {
  const { id, createdAt } = await make('regions', { name: 'between' });
  const isListed = async (operator: string, fraction: string) => {
    const bound = createdAt.replace('Z', `${fraction}Z`);
    const query = `/api/inventory/regions?createdAt.${operator}=${bound}`;
    const { items } = await root.get<RecordPage>(query).expect(200);
    return items.some((each) => each.id === id);
  };
  const listedWith = async (fraction: string) => {
    const operators = ['gte', 'gt', 'lte', 'lt'];
    const found = await Promise.all(operators.map((operator) => isListed(operator, fraction)));
    return operators.filter((_, i) => found[i]);
  };
  expect(await listedWith('')).toEqual(['gte', 'lte']);
  expect(await listedWith('000')).toEqual(['gte', 'lte']);
  expect(await listedWith('0000001')).toEqual(['lte', 'lt']);
  expect(await listedWith('999')).toEqual(['lte', 'lt']);
});

test.each(['gte', 'gt', 'lte', 'lt'])('%s of the last time is no error', async (operator) => {
  const last = '9999-12-31T23:59:59.9999Z';
  await root.get(`/api/inventory/regions?createdAt.${operator}=${last}`).expect(200);
});
