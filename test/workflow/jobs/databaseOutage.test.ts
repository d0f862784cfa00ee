import { chmod, mkdtemp, realpath, rm } from 'node:fs/promises';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import os from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { openDatabase } from '../../../db/core/knex.ts';
import { migrateUp } from '../../../db/core/migrate.ts';
import { freePort } from '../../../dev/freePort.ts';
import { ensureDatabase, startPostgres, type PostgresServer } from '../../../dev/postgres.ts';
import { createLog } from '../../../platform/log.ts';
import type { JobRecord } from '../../../api/jobs/schemas.ts';
import type { ProblemBody } from '../../support/client.ts';
import { startAppOn, type TestApp } from '../../support/app.ts';
import { startFollower } from '../../support/eventStream.ts';
import { eventually } from '../../support/eventually.ts';
import { PASSWORD, createUser } from '../../support/users.ts';

let folder: string;
let port: number;
let postgres: PostgresServer;
let app: TestApp;

const startServer = () =>
  startPostgres({
    dataDir: path.join(folder, 'postgres'),
    port,
    logFile: path.join(folder, 'postgres.log'),
  });

beforeAll(async () => {
  folder = await realpath(await mkdtemp(path.join(os.tmpdir(), 'holdfast-db-')));
  await chmod(folder, 0o711);
  port = await freePort(0);
  postgres = await startServer();
  await ensureDatabase(postgres, 'outage');
  const db = openDatabase({
    url: postgres.url('outage'),
    poolSize: 3,
    statementTimeoutMs: 0,
    log: createLog('silent', false),
  });
  await migrateUp(db);
  await db.destroy();
  app = await startAppOn(postgres.url('outage'));
});

/** Reads a job until it has the status; reads fail while the database is down. */
const untilStatus = async (id: string, status: string): Promise<JobRecord> =>
  (
    await eventually(
      () => app.client.get<JobRecord>(`/api/jobs/${id}`),
      (response) => response.body.status === status,
    )
  ).body;

afterAll(async () => {
  await app.stop();
  await postgres.stop();
  await rm(folder, { recursive: true, force: true });
});

/** An endpoint whose response the test sends. */
async function startHeldServer() {
  let requests = 0;
  let fail: () => void = () => undefined;
  const server = createServer((_request, response) => {
    requests += 1;
    fail = () => response.writeHead(400).end();
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/`,
    requests: () => requests,
    fail: () => fail(),
    stop: () => server.close(),
  };
}

test('during an outage of PostgreSQL requests get 503, and attempts that end then are recorded after it', async () => {
  const held = await startHeldServer();
  const follower = startFollower(() => app.client.as({ tenant: 'platform' }));
  await eventually(follower.isConnected, (isConnected) => isConnected);
  const failing = await app.client
    .post<JobRecord>('/api/jobs', { type: 'http.request', payload: { url: held.url } })
    .expect(201);
  await eventually(held.requests, (count) => count === 1);
  const body = { type: 'core.sleep', payload: { durationMs: 3_500 } };
  const { id } = await app.client.post<JobRecord>('/api/jobs', body).expect(201);
  const job = await untilStatus(id, 'running');
  const someone = await createUser(app, 'viewer');

  await postgres.stop();
  const refused = await app.client.post<ProblemBody>('/api/jobs', {
    type: 'core.echo',
    payload: {},
  });
  expect(refused).toMatchObject({ status: 503, body: { code: 'unavailable' } });
  expect(refused.headers.get('retry-after')).toBe('2');
  const anonymous = app.client.as({ token: null });
  const signIns = await Promise.all([
    anonymous.post<ProblemBody>('/api/auth/login/local', {
      username: someone.username,
      password: PASSWORD,
    }),
    anonymous.post<ProblemBody>('/api/auth/refresh', { refreshToken: someone.refreshToken }),
    someone.client.get<ProblemBody>('/api/auth/session'),
    anonymous.get<ProblemBody>('/api/auth/providers/enabled'),
  ]);
  for (const response of signIns)
    expect(response).toMatchObject({ status: 503, body: { code: 'unavailable' } });
  const ready = await fetch(`${app.client.base}/readyz`);
  expect(await ready.json()).toMatchObject({
    status: 'unready',
    components: { postgres: 'unavailable', temporal: 'ready' },
  });
  expect(ready.status).toBe(503);
  held.fail();
  // The attempts end while their outcomes cannot be written.
  const startedAt = Date.parse(job.startedAt ?? '');
  await eventually(
    () => Date.now(),
    (now) => now > startedAt + 4_500,
  );

  postgres = await startServer();
  const done = await untilStatus(job.id, 'succeeded');
  expect(done).toMatchObject({ attempts: 1, result: { sleptMs: 3_500 } });
  expect(done.logs.map(({ message }) => message)).toEqual([
    'Attempt 1 started',
    'Slept',
    'Succeeded in attempt 1',
  ]);
  // One that failed permanently is not repeated.
  expect(await untilStatus(failing.id, 'failed')).toMatchObject({
    attempts: 1,
    error: { code: 'http_status', message: 'The server answered 400' },
  });
  expect(held.requests()).toBe(1);
  held.stop();
  // The failed refresh has not used up the refresh token.
  await anonymous.post('/api/auth/refresh', { refreshToken: someone.refreshToken }).expect(200);
  const next = await app.client
    .post<JobRecord>('/api/jobs', { type: 'core.echo', payload: {} }, { prefer: 'wait=20' })
    .expect(201);
  expect(next.status).toBe('succeeded');
  // Who follows the events gets those from before and after the outage.
  await eventually(
    () => follower.received.map(({ subject, type }) => `${type} ${subject.id}`),
    (events) => events.includes(`job.succeeded ${next.id}`),
  );
  await follower.leave();
  const { rows } = await app.deps.db.raw<{ rows: { id: string }[] }>(
    'SELECT id FROM events WHERE sequence >= ? ORDER BY sequence LIMIT ?',
    [follower.received[0]?.sequence ?? 0, follower.received.length],
  );
  expect(follower.received.map(({ id }) => id)).toEqual(rows.map(({ id }) => id));
  expect(follower.received[0]).toMatchObject({ type: 'job.created', subject: { id: failing.id } });
});
