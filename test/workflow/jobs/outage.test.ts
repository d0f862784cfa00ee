import { mkdtemp, rm } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { freePort } from '../../../dev/freePort.ts';
import { startTemporal, type TemporalServer } from '../../../dev/temporal.ts';
import type { JobRecord } from '../../../api/jobs/schemas.ts';
import { startApp, type TestApp } from '../../support/app.ts';
import { eventually } from '../../support/eventually.ts';

let folder: string;
let ports: { port: number; uiPort: number };
let server: TemporalServer;
let app: TestApp;

const startServer = async () =>
  startTemporal({
    binary: process.env.TEST_TEMPORAL_BINARY ?? '',
    ...ports,
    dbFile: path.join(folder, 'temporal.db'),
    logFile: path.join(folder, 'temporal.log'),
  });

beforeAll(async () => {
  folder = await mkdtemp(path.join(os.tmpdir(), 'holdfast-outage-'));
  ports = { port: await freePort(0), uiPort: await freePort(0) };
  server = await startServer();
  app = await startApp({ TEMPORAL_ADDRESS: server.address });
});
afterAll(async () => {
  await app.stop();
  await server.stop();
  await rm(folder, { recursive: true, force: true });
});

test('jobs created during an outage of Temporal are accepted, and run once after it', async () => {
  const echo = (n: number) => ({ type: 'core.echo', payload: { n } });
  const before = await app.client
    .post<JobRecord>('/api/jobs', echo(-1), { prefer: 'wait=20' })
    .expect(201);
  expect(before.status).toBe('succeeded');
  await server.stop();

  const created = await Promise.all(
    Array.from({ length: 50 }, (_, n) =>
      app.client.post<JobRecord>('/api/jobs', echo(n)).expect(201),
    ),
  );
  const probe = async () => {
    const response = await fetch(`${app.client.base}/readyz`);
    return { status: response.status, body: (await response.json()) as { status: string } };
  };
  const degraded = await eventually(probe, ({ body }) => body.status === 'degraded');
  expect(degraded).toMatchObject({
    status: 200,
    body: { components: { postgres: 'ready', temporal: 'unavailable' } },
  });
  // Its worker does not offer its slots then.
  expect(app.deps.isTemporalReady()).toBe(false);

  server = await startServer();
  const ids = created.map(({ id }) => id);
  await eventually(
    () => app.deps.db('jobs').whereIn('id', ids).whereNot('status', 'succeeded'),
    (left) => left.length === 0,
    { withinMs: 50_000 },
  );
  const attempts: number[] = await app.deps.db('jobs').whereIn('id', ids).pluck('attempts');
  expect(attempts).toEqual(Array(50).fill(1));
  const finished: string[] = await app.deps
    .db('events')
    .whereIn('subject_id', ids)
    .where({ type: 'job.succeeded' })
    .pluck('subject_id');
  expect(finished.toSorted()).toEqual(ids.toSorted());
  await eventually(
    () => app.deps.db('outbox'),
    (rows) => rows.length === 0,
  );
});
