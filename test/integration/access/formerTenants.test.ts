import { afterAll, beforeAll, expect, test } from '@jest/globals';
import type { RetentionRecord } from '../../../api/retention/schemas.ts';
import type { ViewRecord } from '../../../api/views/schemas.ts';
import { readOverrides } from '../../../db/retention/settings.ts';
import { startApp, type TestApp } from '../../support/app.ts';
import type { TestClient } from '../../support/client.ts';
import { recordFactory } from '../../support/inventory.ts';
import { admin, type Page } from '../../support/users.ts';

let app: TestApp;
let root: TestClient;
const make = recordFactory(() => root);
const member = (tenant: string) => app.client.as({ actor: 'ann', roles: 'platform-admin', tenant });
beforeAll(async () => {
  app = await startApp({ HOLDFAST_ROLE: 'api' }, { idle: true });
  root = admin(app);
});
afterAll(() => app.stop());

const VIEW = { list: '/inventory/sites', name: 'Active', search: { status: 'active' } };
const makeView = (tenant: string, body: object = {}) =>
  member(tenant)
    .post<ViewRecord>('/api/views', { ...VIEW, ...body })
    .expect(201);
const viewsOf = async (tenant: string) =>
  (await member(tenant).get<Page<ViewRecord>>('/api/views').expect(200)).items.map(({ id }) => id);

test('a tenant has neither the views nor the periods of an earlier one with its id', async () => {
  await make('tenants', { id: 'red', name: 'Red' });
  const shared = await makeView('red', { shared: true });
  await makeView('red', { name: 'Own' });
  await member('red').post(`/api/views/${shared.id}/default`).expect(200);
  await root.put('/api/retention/red', { days: { events: 7 } }).expect(200);
  await root.delete('/api/inventory/tenants/red').expect(204);
  const { db } = app.deps;
  for (const table of ['views', 'view_defaults'])
    expect([table, await db(table).where({ tenant_id: 'red' })]).toEqual([table, []]);
  // What the purge deletes of the former tenant.
  expect((await readOverrides(db, ['red'])).get('red')).toMatchObject({ days: { events: 7 } });
  await make('tenants', { id: 'red', name: 'Another red' });
  expect(await viewsOf('red')).toEqual([]);
  expect(await root.get<RetentionRecord>('/api/retention/red').expect(200)).toMatchObject({
    days: { events: 90 },
    overridden: [],
    version: 0,
  });
});

test('what is deleted with a tenant has its audit entries and events', async () => {
  await make('tenants', { id: 'gray', name: 'Gray' });
  const view = await makeView('gray');
  await root.put('/api/quotas/gray', { limits: { webhooks: 3 } }).expect(200);
  await root.delete('/api/inventory/tenants/gray').expect(204);
  const { db } = app.deps;
  const entries = await db('audit_entries')
    .where({ tenant_id: 'gray' })
    .whereIn('subject_type', ['view', 'quota'])
    .orderBy('id')
    .select('action', 'subject_id');
  expect(entries.map(({ action, subject_id }) => [action, subject_id])).toEqual([
    ['view.create', view.id],
    ['quota.update', 'gray'],
    ['view.delete', view.id],
    ['quota.update', 'gray'],
  ]);
  const limits = await db('events')
    .where({ tenant_id: 'gray', type: 'quota.updated' })
    .orderBy('id')
    .pluck<{ limits: { webhooks: number } }[]>('data');
  expect(limits.map((data) => data.limits.webhooks)).toEqual([3, app.deps.config.quotas.webhooks]);
});

test('a tenant that a gateway named before it had a record keeps its views', async () => {
  const view = await makeView('named');
  await make('tenants', { id: 'named', name: 'Named' });
  expect(await viewsOf('named')).toEqual([view.id]);
});
