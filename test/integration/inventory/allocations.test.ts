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
