import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { startApp, type TestApp } from '../../support/app.ts';
import { assignedToApprovers } from '../../support/approvals.ts';
import type { TestClient } from '../../support/client.ts';
import { importRowsAs, uploadAs, type Import } from '../../support/imports.ts';
import { createToken } from '../../support/tokens.ts';
import { createUser, seedSiteAndDevice, type Page, type TestUser } from '../../support/users.ts';

type Created = { id: string };

let app: TestApp;
let owner: TestUser;
let sender: TestClient;
let reader: TestClient;
beforeAll(async () => {
  app = await startApp();
  await seedSiteAndDevice(app, { tenant: 'red', site: 'here' });
  owner = await createUser(app, { roleId: 'platform-admin', tenantId: 'red' });
  sender = (await createToken(app, owner)).client;
  reader = (await createToken(app, owner, { readOnly: true })).client;
});
afterAll(() => app.stop());

const SECRET = 'known-to-its-sender';

/** Records whose content their senders see as they have sent it. */
const RECORDS: Record<string, { path: string; body: object }> = {
  job: { path: '/api/jobs', body: { type: 'core.echo', payload: { password: SECRET } } },
  schedule: {
    path: '/api/schedules',
    body: {
      name: 'nightly',
      cronExpression: '@daily',
      jobType: 'core.echo',
      payload: { password: SECRET },
      enabled: false,
    },
  },
  webhook: {
    path: '/api/webhooks',
    body: { endpointUrl: `https://hooks.example/?token=${SECRET}`, eventTypes: ['job.failed'] },
  },
  request: {
    path: '/api/workflows',
    body: { ...assignedToApprovers, title: 'a request', payload: { password: SECRET } },
  },
};

describe('content of which a token shows only what it has sent', () => {
  test.each(Object.keys(RECORDS))('%s', async (kind) => {
    const { path, body } = RECORDS[kind] ?? { path: '', body: {} };
    const shows = async (client: TestClient, id: string) =>
      JSON.stringify(await client.get<object>(`${path}/${id}`).expect(200)).includes(SECRET);
    const ofOwner = await owner.client.post<Created>(path, body).expect(201);
    const again = kind === 'schedule' ? { ...body, name: 'by token' } : body;
    const ofToken = await sender.post<Created>(path, again).expect(201);
    const shown = async ({ id }: Created) => ({
      owner: await shows(owner.client, id),
      sender: await shows(sender, id),
      reader: await shows(reader, id),
    });
    expect(await shown(ofOwner)).toEqual({ owner: true, sender: false, reader: false });
    expect(await shown(ofToken)).toEqual({ owner: true, sender: true, reader: false });
  });
});

test('a site of a token does not count while it is away, and counts when it is back', async () => {
  await seedSiteAndDevice(app, { tenant: 'red', site: 'away' });
  const { client } = await createToken(app, owner, { resourceScopes: [{ siteId: 'away' }] });
  const { db } = app.deps;
  const reads = async () => (await client.get('/api/inventory/sites')).status;
  expect(await reads()).toBe(200);
  await db('sites').where({ id: 'away' }).update({ tenant_id: 'blue' });
  expect(await reads()).toBe(403);
  await db('sites').where({ id: 'away' }).delete();
  expect(await reads()).toBe(403);
  await seedSiteAndDevice(app, { tenant: 'red', site: 'away' });
  expect(await reads()).toBe(200);
});

test('a token sees the imports that it has sent, of others what it may read', async () => {
  const atSite = { resourceScopes: [{ siteId: 'here' }] };
  const { client } = await createToken(app, owner, atSite);
  const file = 'name\nelsewhere\n';
  const dryRun = (as: TestClient) => uploadAs(as, file, 'resource=sites&dryRun=true').expect(202);
  const { id } = await dryRun(owner.client);
  const list = async (as: TestClient) =>
    (await as.get<Page<Import>>('/api/inventory/imports').expect(200)).items.map((each) => each.id);
  expect(await list(client)).toEqual([]);
  for (const path of ['', '/rows', '/report'])
    await client.get(`/api/inventory/imports/${id}${path}`).expect(404);
  await client.post(`/api/inventory/imports/${id}/apply`).expect(404);
  const own = await dryRun(client);
  expect(await list(client)).toEqual([own.id]);
  const labelsOf = async (as: TestClient, importId: string) =>
    (await importRowsAs(as, importId)).map(({ label }) => label);
  expect(await labelsOf(client, own.id)).toEqual(['elsewhere']);
  // A token of the whole tenant reads the imports there, but not what their files have.
  expect(await list(reader)).toEqual([own.id, id]);
  expect(await labelsOf(reader, id)).toEqual([null]);
  expect(await labelsOf(owner.client, own.id)).toEqual(['elsewhere']);
});
