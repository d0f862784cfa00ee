import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { startApp, type TestApp } from '../../support/app.ts';
import { createRequest } from '../../support/approvals.ts';
import type { TestClient, TestRequest } from '../../support/client.ts';
import { expectProblem } from '../../support/problem.ts';
import { createRunnerToken, definition, digestOf } from '../../support/runner.ts';
import {
  backdateSchedule,
  createMinutelySchedule,
  listRuns,
  minuteFromNow,
} from '../../support/schedules.ts';
import { createToken } from '../../support/tokens.ts';
import { admin, createUser } from '../../support/users.ts';

let app: TestApp;
let root: TestClient;
beforeAll(async () => {
  app = await startApp({}, { idle: true });
  root = admin(app);
});
afterAll(() => app.stop());

/** Expects that of two requests the first is done, and the second is refused. */
async function expectLast(
  request: (n: number) => TestRequest<unknown>,
  status = 201,
): Promise<void> {
  await request(1).expect(status);
  await expectProblem(request(2), 409, 'limit_reached');
}

test('there are at most 1,000 custom roles', async () => {
  const { db } = app.deps;
  await db.raw(
    `INSERT INTO roles (id, name, permissions, created_at, updated_at)
     SELECT 'many-' || n, 'Many', '{}', now(), now() FROM generate_series(1, 999) AS n`,
  );
  await expectLast((n) =>
    root.post('/api/rbac/roles', { id: `last-${n}`, name: 'Last', permissions: ['job:read'] }),
  );
  await db('roles').delete();
});

test('there are at most 200 pools', async () => {
  const { db } = app.deps;
  await db.raw(
    `INSERT INTO pools (name, description, accept_types, created_by, created_at, updated_at, version)
     SELECT 'many-' || n, '', '{}', 'ann', now(), now(), 1 FROM generate_series(1, 199) AS n`,
  );
  await expectLast((n) => root.post('/api/pools', { name: `last-${n}` }));
  await db('pools').delete();
});

test('there are at most 500 types of runners', async () => {
  await createUser(app, 'viewer');
  const client = await createRunnerToken(app, 'hand');
  await createRunnerToken(app, 'other');
  await app.deps.db.raw(
    `INSERT INTO job_types (name, pool, state, created_at, updated_at, version)
     SELECT 'many.' || n, 'other', 'waiting', now(), now(), 1 FROM generate_series(1, 499) AS n`,
  );
  const announced = await client
    .post<{ types: { state: string; reason?: string }[] }>('/api/runner/announce', {
      ...{ runnerId: randomUUID(), name: 'hand', version: '1', slots: 1, pool: 'hand' },
      types: ['last.one', 'last.two'].map((name) => ({
        digest: digestOf(name),
        definition: { ...definition(name), pool: 'hand' },
      })),
    })
    .expect(200);
  expect(announced.types).toMatchObject([
    { state: 'waiting' },
    { state: 'refused', reason: expect.stringContaining('There are 500 types') },
  ]);
});

test('an account has at most 500 tokens', async () => {
  const user = await createUser(app, 'viewer');
  const { id } = await createToken(app, user);
  await app.deps.db.raw(
    `INSERT INTO tokens (id, kind, user_id, tenant_id, name, hash, read_only, request_tenant_id,
       expires_at, created_by, created_at, updated_at)
     SELECT 'tok_' || n, kind, user_id, tenant_id, name, sha256(n::text::bytea), read_only,
       request_tenant_id, expires_at, created_by, created_at, updated_at
     FROM tokens, generate_series(1, 498) AS n WHERE id = ?`,
    [id],
  );
  await expectLast((n) => user.client.post('/api/auth/tokens', { name: `last-${n}` }));
});

test('a request for approval has at most 500 comments', async () => {
  const { id } = await createRequest(app.client);
  await app.deps.db.raw(
    `INSERT INTO approval_comments (approval_id, number, actor_id, text, created_at)
     SELECT ?, n, 'ann', 'one of many', now() FROM generate_series(1, 499) AS n`,
    [id],
  );
  await expectLast(() => app.client.post(`/api/workflows/${id}/comments`, { text: 'last' }), 200);
});

test('a change of a schedule skips at most 50,000 occurrences', async () => {
  const { id } = await createMinutelySchedule(app.client);
  const change = (cronExpression: string) =>
    app.client.put(`/api/schedules/${id}`, { cronExpression });
  await backdateSchedule(app, id, minuteFromNow(-50_000));
  await expectProblem(change('1 * * * *'), 503, 'unavailable');
  expect(await listRuns(app.client, id)).toEqual([]);
  // The next minute may begin.
  await backdateSchedule(app, id, minuteFromNow(-49_998));
  await change('1 * * * *').expect(200);
  const [{ count } = { count: 0 }] = await app.deps
    .db('schedule_runs')
    .where({ schedule_id: id, outcome: 'skipped' })
    .count<{ count: string }[]>();
  expect([49_999, 50_000]).toContain(Number(count));
});
