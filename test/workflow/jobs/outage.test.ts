import { mkdtemp, rm } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { freePort } from '../../../dev/freePort.ts';
import { startTemporal, type TemporalServer } from '../../../dev/temporal.ts';
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

test('fifty jobs created while Temporal is away are all taken, and run once when it is back', async () => {
  const echo = (n: number) => ({ type: 'core.echo', payload: { n } });
  expect((await app.client.post('/api/jobs', echo(-1), { prefer: 'wait=20' })).body.status).toBe(
    'succeeded',
  );
  await server.stop();

  const tookMs: number[] = [];
  const made = await Promise.all(
    Array.from({ length: 50 }, async (_, n) => {
      const began = performance.now();
      const answer = await app.client.post('/api/jobs', echo(n));
      tookMs.push(performance.now() - began);
      return answer;
    }),
  );
  expect(made.map((answer) => answer.status)).toEqual(Array(50).fill(201));
  expect(Math.max(...tookMs)).toBeLessThan(1_500);
  const ready = await fetch(`${app.client.base}/readyz`);
  expect(await ready.json()).toMatchObject({
    status: 'degraded',
    parts: { postgres: 'ready', temporal: 'away' },
  });
  expect(ready.status).toBe(200);

  server = await startServer();
  const ids = made.map((answer) => answer.body.id as string);
  await eventually(
    () => app.deps.db('jobs').whereIn('id', ids).whereNot('status', 'succeeded'),
    (left) => left.length === 0,
    { withinMs: 50_000 },
  );
  const jobs = await app.deps.db('jobs').whereIn('id', ids);
  expect(jobs.map((job: any) => job.attempts)).toEqual(Array(50).fill(1));
  const ends = await app.deps
    .db('events')
    .whereIn('subject_id', ids)
    .where({ type: 'job.succeeded' });
  expect(new Set(ends.map((event: any) => event.subject_id)).size).toBe(50);
  expect(ends).toHaveLength(50);
  await eventually(
    () => app.deps.db('outbox'),
    (rows) => rows.length === 0,
  );
});
