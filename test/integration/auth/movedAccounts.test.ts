import { afterAll, beforeAll, expect, test } from '@jest/globals';
import type { AuditEntryRecord } from '../../../api/audit/routes.ts';
import { startApp, type TestApp } from '../../support/app.ts';
import { admin, createUser, seedTenant, type Page } from '../../support/users.ts';

let app: TestApp;
beforeAll(async () => {
  app = await startApp({ HOLDFAST_ROLE: 'api' }, { idle: true });
  for (const id of ['red', 'blue']) await seedTenant(app, id);
});
afterAll(() => app.stop());

const createAccount = async (path: string, body: object) =>
  (await admin(app).post<{ id: string }>(path, body).expect(201)).id;

test.each([
  [
    'a user',
    '/api/users',
    () => createAccount('/api/users', { username: 'moves', tenantId: 'red' }),
  ],
  [
    'a service account',
    '/api/service-accounts',
    async () => {
      const { id: ownerId } = await createUser(app);
      return createAccount('/api/service-accounts', { name: 'moves', tenantId: 'red', ownerId });
    },
  ],
])(
  '%s that moves to another tenant is in the log and the events of both',
  async (_what, path, create) => {
    const id = await create();
    await admin(app).put(`${path}/${id}`, { tenantId: 'blue' }).expect(200);
    await admin(app).put(`${path}/${id}`, { displayName: 'Of blue' }).expect(200);
    const recordedIn = async (tenant: string) => {
      const { items } = await app.client
        .as({ actor: 'ann', roles: 'platform-admin', tenant })
        .get<Page<AuditEntryRecord>>(`/api/audit?subjectId=${id}`)
        .expect(200);
      const events = await app.deps
        .db('events')
        .where({ tenant_id: tenant, subject_id: id })
        .orderBy('id');
      return {
        entries: items.toReversed().map(({ action }) => action),
        events: events.map(({ type, data }) => [type, data.tenantId]),
      };
    };
    expect(await recordedIn('red')).toEqual({
      entries: ['user.create', 'user.update'],
      events: [
        ['auth.user.created', 'red'],
        ['auth.user.updated', 'blue'],
      ],
    });
    expect(await recordedIn('blue')).toEqual({
      entries: ['user.update', 'user.update'],
      events: [
        ['auth.user.updated', 'blue'],
        ['auth.user.updated', 'blue'],
      ],
    });
  },
);
