import { afterAll, beforeAll, expect, test } from '@jest/globals';
import type { ScheduleRecord } from '../../../api/schedules/schemas.ts';
import type { WebhookRecord } from '../../../api/webhooks/schemas.ts';
import { startApp, type TestApp } from '../../support/app.ts';
import type { ProblemBody, TestClient } from '../../support/client.ts';
import type { InventoryRecord } from '../../support/inventory.ts';
import { admin } from '../../support/users.ts';

let app: TestApp;
let root: TestClient;

beforeAll(async () => {
  app = await startApp({}, { idle: true });
  root = admin(app).as({ actor: 'root', roles: 'platform-admin', tenant: 'platform' });
});
afterAll(() => app.stop());

const schedule = {
  ...{ name: 'nightly', cronExpression: '30 2 * * *', timezone: 'Europe/London' },
  ...{ startAt: null, endAt: '2040-01-01T00:00:00.000Z', jobType: 'core.echo', payload: {} },
};

/** What a form sends: all fields, of which one is changed. */
const renamed = { ...schedule, name: 'renamed' };

test('a schedule that has ended can be renamed with all its fields', async () => {
  const { id } = await root.post<ScheduleRecord>('/api/schedules', schedule).expect(201);
  const endAt = '2020-01-01T00:00:00.000Z';
  await app.deps.db('schedules').where({ id }).update({ end_at: endAt, next_due_at: null });
  const path = `/api/schedules/${id}`;
  expect(await root.put(path, { ...renamed, endAt }).expect(200)).toMatchObject({
    ...{ name: 'renamed', endAt },
  });
  const { errors } = await root
    .put<ProblemBody>(path, { ...renamed, endAt: '2020-01-02T00:00:00.000Z' })
    .expect(400);
  expect(errors?.map(({ pointer }) => pointer)).toEqual(['/endAt']);
});

test('a schedule with cancelOther can be renamed with all its fields without job:cancel', async () => {
  const fields = { name: 'cancels', overlapPolicy: 'cancelOther' };
  const { id } = await root
    .post<ScheduleRecord>('/api/schedules', { ...schedule, ...fields })
    .expect(201);
  const permissions = ['schedule:read', 'schedule:write'];
  await root.post('/api/rbac/roles', { id: 'editor', name: 'editor', permissions }).expect(201);
  const editor = app.client.as({ actor: 'eve', roles: 'editor', tenant: 'platform' });
  const path = `/api/schedules/${id}`;
  await editor.put(path, { ...schedule, ...fields, name: 'still cancels' }).expect(200);
  await editor.put(path, { ...schedule, ...fields, cronExpression: '* * * * *' }).expect(403);
});

test('a webhook keeps an address that is refused today', async () => {
  const webhook = { endpointUrl: 'https://example.net/', eventTypes: ['*'] };
  const { id } = await root.post<WebhookRecord>('/api/webhooks', webhook).expect(201);
  const endpointUrl = 'http://10.0.0.1/';
  await app.deps.db('webhooks').where({ id }).update({ endpoint_url: endpointUrl });
  const path = `/api/webhooks/${id}`;
  const change = { endpointUrl, eventTypes: ['job.failed'], description: 'changed' };
  expect(await root.put(path, change).expect(200)).toMatchObject(change);
  await root.put(path, { ...change, endpointUrl: 'http://10.0.0.2/' }).expect(400);
});

test('a record of the inventory can be sent back with more custom fields than one request may change', async () => {
  const names = Array.from({ length: 101 }, (_, n) => `field_${n}`);
  for (const name of names)
    await root
      .post('/api/inventory/custom-fields', { resource: 'sites', name, type: 'text' })
      .expect(201);
  const valuesOf = (some: readonly string[]) => Object.fromEntries(some.map((name) => [name, 'a']));
  const { id } = await root
    .post<InventoryRecord>('/api/inventory/sites', {
      ...{ name: 'many', customFields: valuesOf(names.slice(0, 100)) },
    })
    .expect(201);
  const path = `/api/inventory/sites/${id}`;
  await root.put(path, { customFields: valuesOf(names.slice(100)) }).expect(200);
  const read = await root.get<InventoryRecord>(path).expect(200);
  const values = { ...(read.customFields as object), field_7: 'b' };
  const saved = await root.put(path, { ...read, customFields: values }).expect(200);
  expect(saved).toMatchObject({ customFields: values });
  const all = Object.fromEntries(names.map((name) => [name, 'c']));
  const { errors } = await root.put<ProblemBody>(path, { customFields: all }).expect(400);
  expect(errors?.map(({ pointer }) => pointer)).toEqual(['/customFields']);
});
