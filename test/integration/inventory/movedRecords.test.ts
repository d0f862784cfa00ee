import { afterAll, beforeAll, expect, test } from '@jest/globals';
import type { Static } from 'typebox';
import type { AuditEntryRecord } from '../../../api/audit/routes.ts';
import type { ChangeView } from '../../../api/inventory/schemas.ts';
import { startApp, type TestApp } from '../../support/app.ts';
import type { TestClient } from '../../support/client.ts';
import { recordFactory, type InventoryRecord } from '../../support/inventory.ts';
import { admin, type Page } from '../../support/users.ts';

let app: TestApp;
let root: TestClient;
const make = recordFactory(() => root);
const member = (tenant: string) => app.client.as({ actor: 'ann', roles: 'platform-admin', tenant });
const TENANTS = ['red', 'blue', 'green'];
beforeAll(async () => {
  app = await startApp({ HOLDFAST_ROLE: 'api' }, { idle: true });
  root = admin(app);
  for (const id of TENANTS) await make('tenants', { id, name: id });
});
afterAll(() => app.stop());

type Changes = Page<Static<typeof ChangeView>>;
type Emitted = { type: string; data: { version: number; changed: string[] } };

/** What a tenant has of a record: entries of the audit log, and events. */
async function recordedIn(tenant: string, id: string) {
  const client = member(tenant);
  const audit = await client
    .get<Page<AuditEntryRecord>>(`/api/audit?subjectId=${id}&limit=200`)
    .expect(200);
  const events = await app.deps
    .db('events')
    .where({ tenant_id: tenant, subject_id: id })
    .orderBy('id');
  return {
    entries: audit.items
      .toReversed()
      .map(({ action, before, after }) => [
        action,
        (before as InventoryRecord | null)?.tenantId,
        (after as InventoryRecord | null)?.tenantId,
      ]),
    events: (events as Emitted[]).map(({ type, data }) => [type, data.version, data.changed]),
  };
}

const actionsOf = async (client: TestClient, path: string) =>
  (await client.get<Changes>(`${path}/changes`).expect(200)).items
    .toReversed()
    .map(({ action }) => action);

test('a record that moves is deleted in one tenant and created in the other', async () => {
  const site = await make('sites', { name: 'moving', description: 'of red', tenantId: 'red' });
  const path = `/api/inventory/sites/${site.id}`;
  await root.put(path, { description: 'of red, later' }).expect(200);
  const moved = await root
    .put<InventoryRecord>(path, { tenantId: 'blue', description: 'of blue' })
    .expect(200);
  const changed = ['description', 'tenantId'];
  expect(await recordedIn('red', site.id)).toEqual({
    entries: [
      ['inventory.site.create', undefined, 'red'],
      ['inventory.site.update', 'red', 'red'],
      ['inventory.site.delete', 'red', undefined],
    ],
    events: [
      ['inventory.site.created', 1, []],
      ['inventory.site.updated', 2, ['description']],
      ['inventory.site.deleted', 2, expect.arrayContaining(changed)],
    ],
  });
  expect(await recordedIn('blue', site.id)).toEqual({
    entries: [['inventory.site.create', undefined, 'blue']],
    events: [['inventory.site.created', 3, expect.arrayContaining(changed)]],
  });
  // Each tenant has the history of its own time, all others none.
  const [red, blue, green] = [member('red'), member('blue'), member('green')];
  expect(await actionsOf(red, path)).toEqual(['create', 'update', 'delete']);
  expect(await actionsOf(blue, path)).toEqual(['create']);
  expect(await actionsOf(root, path)).toEqual(['create', 'update', 'delete', 'create']);
  await green.get(`${path}/changes`).expect(404);
  await red.get(path).expect(404);
  expect(await red.get(`${path}?at=${site.createdAt}`).expect(200)).toMatchObject({
    description: 'of red',
  });
  await red.get(`${path}?at=${moved.updatedAt}`).expect(404);
  await blue.get(`${path}?at=${site.createdAt}`).expect(404);
  expect(await blue.get(`${path}?at=${moved.updatedAt}`).expect(200)).toEqual(moved);
});

test('what moves with a record is in both tenants, too', async () => {
  const [here, there] = [
    await make('sites', { name: 'here', tenantId: 'red' }),
    await make('sites', { name: 'there', tenantId: 'blue' }),
  ];
  const manufacturerId = (await make('manufacturers', { name: 'Maker' })).id;
  const deviceTypeId = (await make('device-types', { manufacturerId, model: 'x' })).id;
  const device = await make('devices', {
    ...{ name: 'd', siteId: here.id, deviceTypeId, tenantId: 'red' },
  });
  const port = await make('interfaces', { deviceId: device.id, name: 'eth0', kind: 'copper' });
  await root
    .put(`/api/inventory/devices/${device.id}`, { tenantId: 'blue', siteId: there.id })
    .expect(200);
  const actionsIn = async (tenant: string) =>
    (await recordedIn(tenant, port.id)).entries.map(([action]) => action);
  expect(await actionsIn('red')).toEqual([
    'inventory.interface.create',
    'inventory.interface.delete',
  ]);
  expect(await actionsIn('blue')).toEqual(['inventory.interface.create']);
});

test('a record that was in several tenants has a history in each, also after it is deleted', async () => {
  const region = await make('regions', { name: 'travels', tenantId: 'red' });
  const path = `/api/inventory/regions/${region.id}`;
  for (const tenantId of ['blue', 'red', 'green']) await root.put(path, { tenantId }).expect(200);
  expect(await actionsOf(member('red'), path)).toEqual(['create', 'delete', 'create', 'delete']);
  expect(await actionsOf(member('blue'), path)).toEqual(['create', 'delete']);
  await root.delete(path).expect(204);
  expect(await actionsOf(member('green'), path)).toEqual(['create', 'delete']);
  expect(await actionsOf(member('blue'), path)).toEqual(['create', 'delete']);
});
