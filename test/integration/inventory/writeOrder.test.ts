import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import pg from 'pg';
import { startApp, type TestApp } from '../../support/app.ts';
import type { TestClient } from '../../support/client.ts';
import { recordFactory, type BulkReport, type WriteProblem } from '../../support/inventory.ts';
import { expectInvalid } from '../../support/problem.ts';
import { admin } from '../../support/users.ts';

let app: TestApp;
let root: TestClient;
const make = recordFactory(() => root);
beforeAll(async () => {
  app = await startApp({}, { idle: true });
  root = admin(app);
  await make('tenants', { id: 'red', name: 'Red' });
});
afterAll(() => app.stop());

type Step = [operation: 'create' | 'update' | 'delete', resource: string, record: object];

/** What the validation allows is written. */
async function write(...steps: Step[]): Promise<string[]> {
  const mutations = steps.map(([operation, resource, record]) => ({ operation, resource, record }));
  await root.post('/api/validation/inventory', { mutations }).expect(200);
  const { results } = await root.post<BulkReport>('/api/inventory/bulk', { mutations }).expect(200);
  return results.map(({ id }) => String(id));
}
const stored = async (table: string, id: string) =>
  (await app.deps.db(table).where({ id }).first()) as Record<string, unknown>;

describe('an update in a batch may refer to what the batch creates, or leave what it deletes', () => {
  const deviceAt = async (siteId: string) => {
    const maker = await make('manufacturers', { name: `m ${siteId}` });
    const type = await make('device-types', { manufacturerId: maker.id, model: 't' });
    return make('devices', { name: `d ${siteId}`, siteId, deviceTypeId: type.id });
  };

  test('a device and its sites', async () => {
    const old = await make('sites', { name: 'old' });
    const device = await deviceAt(old.id);
    const [siteId] = await write(
      ['create', 'sites', { name: 'new' }],
      ['update', 'devices', { id: device.id, siteId: { name: 'new' } }],
      ['delete', 'sites', { id: old.id }],
    );
    expect(await stored('devices', device.id)).toMatchObject({ site_id: siteId });
  });

  test('a range in a new VRF is in its space', async () => {
    const of = { tenantId: 'red' };
    const range = await make('ip-ranges', {
      ...of,
      startAddress: '10.5.0.1',
      endAddress: '10.5.0.9',
    });
    const [vrfId] = await write(
      ['create', 'vrfs', { name: 'v9', ...of }],
      ['update', 'ip-ranges', { id: range.id, vrfId: { name: 'v9' } }],
    );
    expect(await stored('ip_ranges', range.id)).toMatchObject({ in_shared_table: false });
    const overlap = { ...of, vrfId, startAddress: '10.5.0.5', endAddress: '10.5.0.20' };
    await root.post<WriteProblem>('/api/inventory/ip-ranges', overlap).expect(409);
  });

  test('addresses, VLANs and cables have the site of what they now belong to', async () => {
    const site = await make('sites', { name: 'scopes' });
    const device = await deviceAt(site.id);
    const [address, vlan] = [
      await make('ip-addresses', { address: '10.6.0.1' }),
      await make('vlans', { vid: 66, name: 'v66' }),
    ];
    const port = (name: string) => make('interfaces', { deviceId: device.id, name });
    const [one, other] = [await port('one'), await port('other')];
    const cable = await make('cables', { aInterfaceId: one.id, bInterfaceId: other.id });
    await write(
      ['create', 'interfaces', { deviceId: device.id, name: 'mgmt' }],
      ['update', 'ip-addresses', { id: address.id, interfaceId: { name: 'mgmt' } }],
      ['create', 'vlan-groups', { name: 'g9', siteId: site.id }],
      ['update', 'vlans', { id: vlan.id, groupId: { name: 'g9' } }],
      ['create', 'interfaces', { deviceId: device.id, name: 'third' }],
      ['update', 'cables', { id: cable.id, bInterfaceId: { name: 'third' } }],
    );
    expect(await stored('ip_addresses', address.id)).toMatchObject({
      device_site_id: site.id,
      scope_device_id: device.id,
    });
    expect(await stored('vlans', vlan.id)).toMatchObject({ scope_site_id: site.id });
    expect(await stored('cables', cable.id)).toMatchObject({ b_site_id: site.id });
  });
});

describe('trees of regions', () => {
  const connect = async () => {
    const client = new pg.Client({ connectionString: app.databaseUrl });
    await client.connect();
    await client.query('BEGIN');
    return client;
  };

  test('two transactions make no cycle together', async () => {
    const [a, d] = [await make('regions', { name: 'a' }), await make('regions', { name: 'd' })];
    const [b, c] = [
      await make('regions', { name: 'b', parentId: a.id }),
      await make('regions', { name: 'c', parentId: d.id }),
    ];
    const [first, second] = [await connect(), await connect()];
    const move = (client: pg.Client, id: string, parent: string) =>
      client.query('UPDATE regions SET parent_id = $2 WHERE id = $1', [id, parent]);
    await move(first, a.id, c.id);
    await move(second, d.id, b.id);
    // What a commit does first.
    await first.query('SET CONSTRAINTS ALL IMMEDIATE');
    const refused = second.query('SET CONSTRAINTS ALL IMMEDIATE').then(
      () => second.query('COMMIT'),
      (error: unknown) => error,
    );
    // It waits for the first one, or has committed.
    await Promise.race([refused, sleep(200)]);
    await first.query('COMMIT');
    expect(await refused).toMatchObject({ code: '23514' });
    await Promise.all([first.end(), second.end()]);
  });

  test('a cycle that is there holds up nobody, and a tree has an end', async () => {
    const [x, y] = [await make('regions', { name: 'x' }), await make('regions', { name: 'y' })];
    const { db } = app.deps;
    await db.raw('ALTER TABLE regions DISABLE TRIGGER regions_tree');
    await db('regions').where({ id: x.id }).update({ parent_id: y.id });
    await db('regions').where({ id: y.id }).update({ parent_id: x.id });
    await db.raw('ALTER TABLE regions ENABLE TRIGGER regions_tree');
    await expectInvalid(
      root.post('/api/inventory/regions', { name: 'below', parentId: x.id }),
      '/parentId',
    );
    let parentId: string | null = null;
    for (let level = 0; level <= 100; level++)
      parentId = (await make('regions', { name: `level ${level}`, parentId })).id;
    await expectInvalid(
      root.post('/api/inventory/regions', { name: 'too deep', parentId }),
      '/parentId',
    );
  });
});

test('an address that is created while its device moves follows it', async () => {
  const [from, to] = [await make('sites', { name: 'from' }), await make('sites', { name: 'to' })];
  const maker = await make('manufacturers', { name: 'mover' });
  const type = await make('device-types', { manufacturerId: maker.id, model: 't' });
  const device = await make('devices', {
    name: 'mover',
    siteId: from.id,
    deviceTypeId: type.id,
  });
  const port = await make('interfaces', { deviceId: device.id, name: 'e0' });
  const creating = new pg.Client({ connectionString: app.databaseUrl });
  await creating.connect();
  await creating.query('BEGIN');
  await creating.query('SELECT FROM interfaces WHERE id = $1 FOR SHARE', [port.id]);
  await creating.query(
    `INSERT INTO ip_addresses (id, tenant_id, address, interface_id, device_id, status)
     VALUES ('ipa_follows', 'platform', '10.7.0.1/32', $1, $2, 'active')`,
    [port.id, device.id],
  );
  const moved = app.deps.db('devices').where({ id: device.id }).update({ site_id: to.id });
  const waiting = moved.then(() => undefined);
  await creating.query(`SELECT pg_sleep(0.2)`);
  await creating.query('COMMIT');
  await creating.end();
  await waiting;
  expect(await stored('ip_addresses', 'ipa_follows')).toMatchObject({ device_site_id: to.id });
});
