import { chmod, mkdtemp, realpath, rm } from 'node:fs/promises';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import os from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, expect, jest, test } from '@jest/globals';
import pg from 'pg';
import { readConnectionFacts } from '../../../db/core/connectionFacts.ts';
import { openDatabase } from '../../../db/core/knex.ts';
import { migrateUp } from '../../../db/core/migrate.ts';
import { freePort } from '../../../dev/freePort.ts';
import { ensureDatabase, startPostgres, type PostgresServer } from '../../../dev/postgres.ts';
import { createLog } from '../../../platform/log.ts';
import type { JobRecord } from '../../../api/jobs/schemas.ts';
import type { ProblemBody } from '../../support/client.ts';
import { createConnectionCheck } from '../../../services/shared/connectionCheck.ts';
import { startAppOn, type TestApp } from '../../support/app.ts';
import { startFollower } from '../../support/eventStream.ts';
import { eventually } from '../../support/eventually.ts';
import { startMixedLoad, type LoadResult } from '../../support/mixedLoad.ts';
import { createToken } from '../../support/tokens.ts';
import { PASSWORD, createUser } from '../../support/users.ts';

/** Few, so that a test can take all of them. */
const MAX_CONNECTIONS = 30;

/** As a proxy sends them: the metrics are not for every program on this machine then. */
const PROXIED = { 'x-forwarded-for': '192.0.2.7' };

let folder: string;
let port: number;
let postgres: PostgresServer;
let app: TestApp;

const startServer = () =>
  startPostgres({
    dataDir: path.join(folder, 'postgres'),
    port,
    logFile: path.join(folder, 'postgres.log'),
    settings: { max_connections: String(MAX_CONNECTIONS) },
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
  app = await startAppOn(postgres.url('outage'), { HOLDFAST_DATABASE_WAIT_MS: '1000' });
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
  const monitoring = await createToken(app, await createUser(app, 'auditor'));
  await monitoring.client.get('/metrics', PROXIED).expect(200);

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
  const probe = async (path: string) => {
    const response = await fetch(app.client.base + path);
    return { status: response.status, body: await response.json() };
  };
  await eventually(
    () => probe('/readyz'),
    ({ status }) => status === 503,
  );
  expect(await probe('/readyz')).toMatchObject({
    body: { status: 'unready', components: { postgres: 'unavailable', temporal: 'ready' } },
  });
  // The outage is seen in the metrics, also with a token that only PostgreSQL knows.
  expect(String(await monitoring.client.get('/metrics', PROXIED).expect(200))).toContain(
    'holdfast_ready{component="postgres"} 0\n',
  );
  // It is away for every process: this one goes on to answer, with `Retry-After`.
  expect(await probe('/routez')).toEqual({ status: 200, body: { status: 'open' } });
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

/** Stops PostgreSQL with a signal: SIGINT is its mode fast, SIGQUIT immediate, as a crash. */
async function stopWith(signal: 'SIGINT' | 'SIGQUIT'): Promise<void> {
  process.kill(postgres.child.pid, signal);
  await postgres.child.ended;
  await postgres.stop();
}

/** 429: on a slow machine the load of this one tenant waits too long for its share of the pool. */
const isAnswer = ({ status, code, retryAfter }: LoadResult): boolean =>
  status !== 'broken' &&
  (status < 300 || ((status === 503 || code === 'too_many_requests') && Number(retryAfter) >= 1));

test.each(['SIGINT', 'SIGQUIT'] as const)(
  'while PostgreSQL is stopped with %s and started, requests succeed or get 503 with Retry-After',
  async (signal) => {
    const load = startMixedLoad(app.client, signal.toLowerCase());
    const succeeded = (from: number) =>
      new Set(
        load.results.slice(from).flatMap(({ name, status }) => (status !== 503 ? [name] : [])),
      ).size;
    await eventually(
      () => succeeded(0),
      (kinds) => kinds === load.names.length,
    );
    await stopWith(signal);
    const [refused] = await eventually(
      () => load.results.filter(({ status }) => status === 503),
      ({ length }) => length > 20,
    );
    expect(refused?.code).toBe('unavailable');
    postgres = await startServer();
    const startedAt = load.results.length;
    await eventually(
      () => succeeded(startedAt),
      (kinds) => kinds === load.names.length,
    );
    await load.stop();
    // The status of an export that is interrupted has been sent already.
    const others = load.results.filter(
      (result) => !isAnswer(result) && !(result.name === 'export' && result.status === 'broken'),
    );
    expect(others).toEqual([]);
  },
);

/** Takes all connections of PostgreSQL, those of the application too. */
async function takeAllConnections(): Promise<{ release(): Promise<void> }> {
  const taken: pg.Client[] = [];
  const take = async (database: string) => {
    const client = new pg.Client({ connectionString: postgres.url(database) });
    client.on('error', () => undefined);
    await client.connect();
    taken.push(client);
    return client;
  };
  const own = await take('postgres');
  await eventually(
    async () => {
      await own.query(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = 'outage'",
      );
      while (await take('postgres').catch(() => undefined))
        if (taken.length > MAX_CONNECTIONS) break;
      return taken.length;
    },
    (count) => count === MAX_CONNECTIONS,
  );
  return { release: async () => void (await Promise.all(taken.map((client) => client.end()))) };
}

test('without a free connection at PostgreSQL requests get a code of their own, and the log a line', async () => {
  const lines: unknown[] = [];
  const warn = jest.spyOn(app.deps.log, 'warn').mockImplementation((...line) => {
    lines.push(line);
  });
  const all = await takeAllConnections();
  const refused = await app.client.get<ProblemBody>('/api/jobs');
  expect(refused).toMatchObject({ status: 503, body: { code: 'no_database_connection' } });
  expect(refused.headers.get('retry-after')).toBe('2');
  expect(lines).toContainEqual([
    expect.objectContaining({ code: 'no_database_connection' }),
    expect.stringContaining('max_connections'),
  ]);
  expect(await app.deps.metrics.text()).toMatch(
    /holdfast_database_connections_refused_total [1-9]/,
  );
  // A request that waits is served as soon as there is a connection again.
  const waiting = app.client.get('/api/jobs');
  await all.release();
  expect((await waiting).status).toBe(200);
  warn.mockRestore();
});

test('a process whose installation needs more connections than there are is refused', async () => {
  const check = (processes: number) =>
    createConnectionCheck({
      ...app.deps,
      config: { databasePool: 16, processes, otherConnections: 0 },
    });
  await expect(check(2).beforeStart()).rejects.toThrow(
    '2 processes of Holdfast (34) and others (0) may open 34 connections; PostgreSQL accepts 27',
  );
  await check(1).beforeStart();
  // Another process is recognised by the connection with which it listens.
  const other = new pg.Client({
    connectionString: postgres.url('outage'),
    application_name: 'holdfast-changes pool=7 process=other',
  });
  await other.connect();
  expect(await readConnectionFacts(app.deps.db, 16)).toEqual({
    maxConnections: MAX_CONNECTIONS,
    reserved: 3,
    ownLimit: null,
    otherPools: [7],
    othersConnected: 0,
  });
  await other.end();
});
