import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { nounOf } from '../../../domain/shared/nouns.ts';
import { assignedToApprovers } from '../../support/approvals.ts';
import { createArchiveFolder } from '../../support/backups.ts';
import { startApp, type TestApp } from '../../support/app.ts';
import type { TestClient } from '../../support/client.ts';
import { eventually } from '../../support/eventually.ts';
import { recordFactory, type WriteProblem } from '../../support/inventory.ts';
import { admin, createUser } from '../../support/users.ts';
import { waitingForLock } from '../../support/waitingForLock.ts';

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
  const message = expect.stringContaining(`is used by ${nounOf(kind)} `);
  expect(conflicts).toContainEqual({
    code: 'in_use',
    resource: kind,
    message,
    id: expect.any(String),
    pointer: null,
  });
  // Who may not list them learns that there is something.
  const { client } = await createUser(app, 'modeller');
  const refused = await client.delete<WriteProblem>(`/api/inventory/tenants/${id}`).expect(409);
  expect(refused.conflicts[0]).toMatchObject({ code: 'in_use', resource: null, id: null });
});

test('a tenant without any of these is deleted', async () => {
  await recordFactory(() => root)('tenants', { id: 'empty', name: 'empty' });
  await root.delete('/api/inventory/tenants/empty').expect(204);
});

describe('what is created in a tenant while it is deleted', () => {
  const STOP = 42;
  beforeAll(() =>
    app.deps.db.raw(`
      CREATE FUNCTION stop_commit() RETURNS trigger LANGUAGE plpgsql AS $$
        BEGIN
          -- Writes of the inventory wait for 100 ms, and then try again: the other one could come first.
          PERFORM set_config('lock_timeout', '0', true);
          PERFORM pg_advisory_xact_lock_shared(${STOP});
          RETURN NULL;
        END $$;
      CREATE CONSTRAINT TRIGGER stopped AFTER INSERT ON audit_entries DEFERRABLE INITIALLY DEFERRED
        FOR EACH ROW
        -- Not what jobs commit that began before.
        WHEN (NEW.action ~ '[.](create|delete)$') EXECUTE FUNCTION stop_commit()`),
  );

  /** Stops the commit of a request until another one waits for it, which began later. */
  async function overlap<T>(first: () => Promise<T>, second: () => Promise<T>): Promise<[T, T]> {
    const { db } = app.deps;
    const stopped = () => waitingForLock(db, 'advisory', STOP);
    const waiting = () => waitingForLock(db, 'advisory');
    const stop = await db.transaction();
    await stop.raw('SELECT pg_advisory_xact_lock(?)', [STOP]);
    try {
      const one = first();
      await eventually(stopped, ({ length }) => length === 1);
      const other = second();
      await eventually(waiting, ({ length }) => length >= 2);
      await stop.rollback();
      return await Promise.all([one, other]);
    } finally {
      await stop.rollback();
    }
  }

  const creations: [string, string, object][] = [
    ['secrets', '/api/secrets', { name: 'router', value: 'x', pools: [] }],
    ['backups', '/api/backup/create', {}],
    ['workflows', '/api/workflows', { title: 'Change it', ...assignedToApprovers }],
    ['jobs', '/api/jobs', { type: 'core.echo', payload: {} }],
    ['users', '/api/users', { username: 'late' }],
    [
      'schedules',
      '/api/schedules',
      { name: 'late', cronExpression: '* * * * *', jobType: 'core.echo', payload: {} },
    ],
    [
      'webhooks',
      '/api/webhooks',
      { endpointUrl: 'https://127.0.0.1/', eventTypes: ['job.created'] },
    ],
  ];

  test.each([...creations, ['sites', '/api/inventory/sites', { name: 'late' }] as const])(
    'before it: %s keep the tenant',
    async (kind, path, body) => {
      const id = `before-${kind}`;
      await recordFactory(() => root)('tenants', { id, name: id });
      const member = app.client.as({ actor: 'ann', roles: 'platform-admin', tenant: id });
      const [created, deleted] = await overlap(
        async () => (await member.post(path, body)).status,
        async () => (await root.delete(`/api/inventory/tenants/${id}`)).status,
      );
      expect([201, 202]).toContain(created);
      expect(deleted).toBe(409);
    },
  );

  // Views keep no tenant: they are deleted with it.
  const views = ['views', '/api/views', { list: '/inventory/sites', name: 'late', search: {} }];

  test.each([...creations, views as (typeof creations)[number]])(
    'after it: %s are refused',
    async (kind, path, fields) => {
      const id = `after-${kind}`;
      // Names of users are unique in the installation.
      const body = kind === 'users' ? { username: 'later' } : fields;
      await recordFactory(() => root)('tenants', { id, name: id });
      const member = app.client.as({ actor: 'ann', roles: 'platform-admin', tenant: id });
      const [deleted, created] = await overlap(
        async () => (await root.delete(`/api/inventory/tenants/${id}`)).status,
        async () => (await member.post(path, body)).status,
      );
      expect([deleted, created]).toEqual([204, 503]);
    },
  );

  test('takes no lock of each tenant in a restore of all, which would exceed those of a transaction', async () => {
    const locksOf = (setting: 'on' | 'off') =>
      app.deps.db.transaction(async (trx) => {
        await trx.raw(`SET LOCAL holdfast.restoring = '${setting}'`);
        await trx.raw(
          `INSERT INTO created_records SELECT 'tenant-' || n FROM generate_series(1, 20) AS n`,
        );
        const { rows } = await trx.raw<{ rows: { count: number }[] }>(
          "SELECT count(*)::integer FROM pg_locks WHERE locktype = 'advisory' AND pid = pg_backend_pid()",
        );
        return rows[0]?.count;
      });
    await app.deps.db.raw(`
      CREATE TABLE created_records (tenant_id text);
      CREATE TRIGGER tenant_shared AFTER INSERT ON created_records
        FOR EACH ROW EXECUTE FUNCTION share_tenant()`);
    expect([await locksOf('off'), await locksOf('on')]).toEqual([20, 0]);
  });
});
