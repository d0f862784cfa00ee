import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { startApp, type TestApp } from '../../support/app.ts';
import type { TestClient } from '../../support/client.ts';
import { recordFactory, type InventoryRecord } from '../../support/inventory.ts';
import { admin } from '../../support/users.ts';

let app: TestApp;
let root: TestClient;
beforeAll(async () => {
  app = await startApp({}, { idle: true });
  root = admin(app);
  for (const [id, name] of [
    ['acme', 'Acme'],
    ['blue', 'Blue'],
  ])
    await make('tenants', { id, name });
});
afterAll(() => app.stop());

const make = recordFactory(() => root);
const allocate = (prefix: InventoryRecord, body: object) =>
  root.post<InventoryRecord>(`/api/inventory/prefixes/${prefix.id}/allocate`, body);

describe('the tenant of what is allocated', () => {
  const KINDS = [{ kind: 'address' }, { kind: 'prefix', prefixLength: 28 }];

  test.each(KINDS)('is that of the prefix in a table that tenants share: $kind', async (kind) => {
    const cidr = kind.kind === 'address' ? '10.0.0.0/24' : '10.0.1.0/24';
    const pool = await make('prefixes', { cidr, tenantId: 'acme', allocationMode: 'pool' });
    for (const tenantId of [undefined, null, 'acme', { name: 'Acme' }])
      expect(await allocate(pool, { ...kind, record: { tenantId } }).expect(201)).toMatchObject({
        tenantId: 'acme',
      });
    for (const tenantId of ['blue', 'platform', { name: 'Blue' }, 5])
      expect(await allocate(pool, { ...kind, record: { tenantId } }).expect(400)).toMatchObject({
        errors: [{ pointer: '/record/tenantId', code: 'parent_tenant' }],
      });
  });

  test.each(KINDS)('can be another one in a prefix of the platform: $kind', async (kind) => {
    const cidr = kind.kind === 'address' ? '10.0.2.0/24' : '10.0.3.0/24';
    const pool = await make('prefixes', { cidr, tenantId: 'platform', allocationMode: 'pool' });
    for (const tenantId of ['acme', { name: 'Blue' }])
      await allocate(pool, { ...kind, record: { tenantId } }).expect(201);
  });

  test.each(KINDS)('can be another one in the VRF of a tenant: $kind', async (kind) => {
    const { id: vrfId } = await make('vrfs', { name: kind.kind, tenantId: 'acme' });
    const pool = await make('prefixes', {
      ...{ cidr: '10.0.0.0/24', vrfId, tenantId: 'acme', allocationMode: 'pool' },
    });
    expect(
      await allocate(pool, { ...kind, record: { tenantId: 'blue' } }).expect(201),
    ).toMatchObject({ tenantId: 'blue', vrfId });
  });

  test('a tenant that is null is not given: a new prefix gets that of its parent', async () => {
    const parent = await make('prefixes', { cidr: '10.0.4.0/24', tenantId: 'acme' });
    const child = { cidr: '10.0.4.0/28', parentPrefixId: parent.id, tenantId: null };
    expect(await make('prefixes', child)).toMatchObject({ tenantId: 'acme' });
  });
});

describe('in a small IPv4 prefix', () => {
  const usageOf = ({ id }: InventoryRecord) => root.get(`/api/inventory/prefixes/${id}/usage`);

  test('all hosts are all that can be used', async () => {
    const pool = await make('prefixes', { cidr: '10.1.0.0/29', allocationMode: 'pool' });
    expect((await usageOf(pool)).body).toMatchObject({ used: '0', free: '6', percent: 0 });
    for (let host = 1; host <= 6; host++)
      expect((await allocate(pool, { kind: 'address' }).expect(201)).address).toBe(
        `10.1.0.${host}/29`,
      );
    expect((await usageOf(pool)).body).toMatchObject({
      ...{ size: '8', used: '6', free: '0', percent: 100 },
    });
    await allocate(pool, { kind: 'address' }).expect(409);
  });

  test('child prefixes use all of it, and a container is for them', async () => {
    const parent = await make('prefixes', { cidr: '10.1.1.0/29' });
    await make('prefixes', { cidr: '10.1.1.0/30' });
    expect((await usageOf(parent)).body).toMatchObject({ used: '4', free: '3' });
    await make('prefixes', { cidr: '10.1.1.4/30' });
    expect((await usageOf(parent)).body).toMatchObject({ used: '8', free: '0', percent: 100 });
    const container = await make('prefixes', { cidr: '10.1.2.0/29', status: 'container' });
    expect((await usageOf(container)).body).toMatchObject({ used: '0', free: '8' });
  });

  test('child prefixes of one address take the first and the last one too', async () => {
    const pool = await make('prefixes', { cidr: '10.1.3.0/29', allocationMode: 'pool' });
    const single = { kind: 'prefix', prefixLength: 32 };
    // What is known of free addresses says nothing of the first one.
    for (let host = 1; host <= 2; host++) await allocate(pool, { kind: 'address' }).expect(201);
    const cidrs: unknown[] = [];
    for (let count = 0; count < 6; count++)
      cidrs.push((await allocate(pool, single).expect(201)).cidr);
    expect(cidrs).toEqual([0, 3, 4, 5, 6, 7].map((host) => `10.1.3.${host}/32`));
    await allocate(pool, single).expect(409);
  });
});
