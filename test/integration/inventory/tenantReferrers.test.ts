import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { assignedToApprovers } from '../../support/approvals.ts';
import { createArchiveFolder } from '../../support/backups.ts';
import { startApp, type TestApp } from '../../support/app.ts';
import type { TestClient } from '../../support/client.ts';
import { recordFactory, type WriteProblem } from '../../support/inventory.ts';
import { admin, createUser } from '../../support/users.ts';

let app: TestApp;
let root: TestClient;
let archives: Awaited<ReturnType<typeof createArchiveFolder>>;
beforeAll(async () => {
  archives = await createArchiveFolder();
  // No worker: what is created stays queued.
  app = await startApp({ ...archives.env, HOLDFAST_ROLE: 'api' }, { idle: true });
  root = admin(app);
  const permissions = ['inventory:read', 'inventory:write'];
  await root.post('/api/rbac/roles', { id: 'modeller', name: 'Modeller', permissions }).expect(201);
});
afterAll(async () => {
  await app.stop();
  await archives.remove();
});

test.each([
  ['secrets', '/api/secrets', { name: 'router', value: 'x', pools: [] }],
  ['backups', '/api/backup/create', {}],
  ['workflows', '/api/workflows', { title: 'Change it', ...assignedToApprovers }],
  ['jobs', '/api/jobs', { type: 'core.echo', payload: {} }],
])('a tenant with %s is not deleted: a later one would have them', async (kind, path, body) => {
  const id = `with-${kind}`;
  await recordFactory(() => root)('tenants', { id, name: id });
  const { status } = await app.client
    .as({ actor: 'ann', roles: 'platform-admin', tenant: id })
    .post(path, body);
  expect([201, 202]).toContain(status);
  const { conflicts } = await root.delete<WriteProblem>(`/api/inventory/tenants/${id}`).expect(409);
  expect(conflicts).toContainEqual(expect.objectContaining({ code: 'in_use', resource: kind }));
  // Who may not list them learns that there is something.
  const { client } = await createUser(app, 'modeller');
  const refused = await client.delete<WriteProblem>(`/api/inventory/tenants/${id}`).expect(409);
  expect(refused.conflicts[0]).toMatchObject({ code: 'in_use', resource: null, id: null });
});

test('a tenant without any of these is deleted', async () => {
  await recordFactory(() => root)('tenants', { id: 'empty', name: 'empty' });
  await root.delete('/api/inventory/tenants/empty').expect(204);
});
