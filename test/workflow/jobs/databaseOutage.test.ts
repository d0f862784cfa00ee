import { chmod, mkdtemp, realpath, rm } from 'node:fs/promises';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import os from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { openDatabase } from '../../../db/core/knex.ts';
import { migrateUp } from '../../../db/core/migrate.ts';
import { freePort } from '../../../dev/freePort.ts';
import { ensureDatabase, startPostgres, type Postgres } from '../../../dev/postgres.ts';
import { createLog } from '../../../platform/log.ts';
import { startAppOn, type TestApp } from '../../support/app.ts';
import { eventually } from '../../support/eventually.ts';
import { PASSWORD, person } from '../../support/users.ts';

let folder: string;
let port: number;
let postgres: Postgres;
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
afterAll(async () => {
  await app.stop();
  await postgres.stop();
  await rm(folder, { recursive: true, force: true });
});

test('PostgreSQL away: 503 that says so, and what ran meanwhile is recorded when it is back', async () => {
  const read = async (id: string) => (await app.client.get(`/api/jobs/${id}`)).body;
  const { body } = await app.client.post('/api/jobs', {
    type: 'core.sleep',
    payload: { durationMs: 3_500 },
  });
  const job = await eventually(
    () => read(body.id),
    (state) => state.status === 'running',
  );
  const someone = await person(app, 'viewer');

  await postgres.stop();
  const refused = await app.client.post('/api/jobs', { type: 'core.echo', payload: {} });
  expect([refused.status, refused.body.code]).toEqual([503, 'unavailable']);
  expect(refused.headers.get('retry-after')).toBe('2');
  const nobody = app.client.as({ token: null });
  const signIns = await Promise.all([
    nobody.post('/api/auth/login/local', { username: someone.username, password: PASSWORD }),
    nobody.post('/api/auth/refresh', { refreshToken: someone.refreshToken }),
    someone.client.get('/api/auth/session'),
    nobody.get('/api/auth/providers/enabled'),
  ]);
  expect(signIns.map(({ status, body: problem }) => [status, problem.code])).toEqual(
    Array.from({ length: 4 }, () => [503, 'unavailable']),
  );
  const ready = await fetch(`${app.client.base}/readyz`);
  expect(await ready.json()).toMatchObject({
    status: 'unready',
    parts: { postgres: 'away', temporal: 'ready' },
  });
  expect(ready.status).toBe(503);
  // The attempt ends while nobody can write that down.
  await eventually(
    () => Date.now(),
    (now) => now > Date.parse(job.startedAt) + 4_500,
  );

  postgres = await startServer();
  const done = await eventually(
    () => read(job.id),
    (state) => state.status === 'succeeded',
  );
  expect(done).toMatchObject({ attempts: 1, result: { sleptMs: 3_500 } });
  expect(done.logs.map((line: any) => line.message)).toEqual([
    'Attempt 1 started',
    'Slept',
    'Succeeded in attempt 1',
  ]);
  // Nothing of the session was spent on the way.
  expect(
    (await nobody.post('/api/auth/refresh', { refreshToken: someone.refreshToken })).status,
  ).toBe(200);
  const next = await app.client.post(
    '/api/jobs',
    { type: 'core.echo', payload: {} },
    { prefer: 'wait=20' },
  );
  expect(next.body.status).toBe('succeeded');
});

test('an attempt that fails for good while PostgreSQL is away is not made again', async () => {
  let requests = 0;
  let fail: () => void = () => undefined;
  const server = createServer((_req, res) => {
    requests += 1;
    fail = () => res.writeHead(400).end();
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/`;
  const { body } = await app.client.post('/api/jobs', { type: 'http.request', payload: { url } });
  await eventually(
    () => requests,
    (count) => count === 1,
  );
  await postgres.stop();
  fail();
  const downSince = Date.now();
  await eventually(
    () => Date.now(),
    (now) => now > downSince + 1_500,
  );
  postgres = await startServer();
  const read = async () => (await app.client.get(`/api/jobs/${body.id}`)).body;
  const done = await eventually(read, (state) => state.status === 'failed');
  expect(done).toMatchObject({
    attempts: 1,
    error: { code: 'http_status', message: 'The server answered 400' },
  });
  expect(requests).toBe(1);
  server.close();
});
