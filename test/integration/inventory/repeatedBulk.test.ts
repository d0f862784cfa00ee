import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { startApp, type TestApp } from '../../support/app.ts';
import type { TestClient } from '../../support/client.ts';
import { recordFactory, type BulkReport } from '../../support/inventory.ts';
import { admin } from '../../support/users.ts';

let app: TestApp;
let root: TestClient;
beforeAll(async () => {
  app = await startApp({ HOLDFAST_ROLE: 'api' }, { idle: true });
  root = admin(app);
});
afterAll(() => app.stop());

/** Sends a request again whose answer was not stored, as when its process was killed after the commit. */
async function repeat(client: TestClient, body: object, key: string): Promise<BulkReport> {
  await app.deps.db('idempotency_keys').where({ key }).update({ answer: null });
  return client
    .post<BulkReport>('/api/inventory/bulk', body, { 'idempotency-key': key })
    .expect(200);
}

test('a repeated request has the results of the first one, not of a later change', async () => {
  const make = recordFactory(() => root);
  const [one, two] = [await make('sites', { name: 'one' }), await make('sites', { name: 'two' })];
  const site = (operation: string, record: object) => ({ resource: 'sites', operation, record });
  const body = {
    mode: 'each',
    mutations: [
      site('update', { id: one.id, status: 'retired' }),
      site('create', { name: 'three' }),
      site('update', { id: one.id, status: 'retired' }),
      site('create', { name: 'one' }),
      site('create', { name: 'four', status: 'broken' }),
      site('delete', { id: two.id }),
    ],
  };
  const key = 'killed-1';
  const first = await root
    .post<BulkReport>('/api/inventory/bulk', body, { 'idempotency-key': key })
    .expect(200);
  await root.put(`/api/inventory/sites/${one.id}`, { description: 'later' }).expect(200);
  const again = await repeat(root, body, key);
  const facts = ({ results }: BulkReport) =>
    results.map(({ resource, outcome, id, version }) => ({ resource, outcome, id, version }));
  expect(facts(again)).toEqual(facts(first));
  expect(again.counts).toEqual(first.counts);
  expect(again.results[4]?.warnings).toMatchObject([{ code: 'findings_not_kept' }]);
});

test('a repeated request names no record that its sender may not read any more', async () => {
  const client = app.client.as({ actor: 'ann', roles: 'platform-admin', tenant: 'moved' });
  const body = {
    mutations: [{ resource: 'sites', operation: 'create', record: { name: 'moves' } }],
  };
  const key = 'moved-1';
  const { results } = await client
    .post<BulkReport>('/api/inventory/bulk', body, { 'idempotency-key': key })
    .expect(200);
  await app.deps.db('sites').where({ id: results[0]?.id }).update({ tenant_id: 'another' });
  expect((await repeat(client, body, key)).results).toMatchObject([
    { outcome: 'created', id: null, version: null },
  ]);
});
