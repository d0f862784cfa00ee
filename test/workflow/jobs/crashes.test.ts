import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import type { Static } from 'typebox';
import type { ImportRecord } from '../../../api/inventory/fileRoutes.ts';
import type { JobRecord } from '../../../api/jobs/schemas.ts';
import { startApp, type TestApp } from '../../support/app.ts';
import { killRounds } from '../../support/effort.ts';
import { eventually } from '../../support/eventually.ts';
import { seedJobs } from '../../support/retention.ts';
import { replaceableWorker } from '../../support/replaceableWorker.ts';
import type { TestClient } from '../../support/client.ts';
import { startTogether } from '../../support/sharedRuns.ts';
import { startSink, type Sink } from '../../support/sink.ts';
import { stopUpdates } from '../../support/stopPoints.ts';
import { admin } from '../../support/users.ts';

/** The API runs in this process, the worker in a process that the tests kill and replace. */
let api: TestApp;
let root: TestClient;
const worker = replaceableWorker(() => ({ ...api.env, HOLDFAST_ROLE: 'worker' }));
beforeAll(async () => {
  api = await startApp({ HOLDFAST_ROLE: 'api' });
  root = admin(api);
});
afterAll(async () => {
  await worker.stop();
  await api.stop();
});

const sleepJob = (durationMs: number, maxAttempts = 3) =>
  api.client
    .post<JobRecord>('/api/jobs', {
      type: 'core.sleep',
      payload: { durationMs },
      retryPolicy: { maxAttempts, initialIntervalSeconds: 0.1 },
    })
    .expect(201);
const echoJob = (payload: object) =>
  api.client.post<JobRecord>('/api/jobs', { type: 'core.echo', payload }).expect(201);
const read = (id: string) => api.client.get<JobRecord>(`/api/jobs/${id}`).expect(200);
const untilStatus = (id: string, status: string) =>
  eventually(
    () => read(id),
    (job) => job.status === status,
    { withinMs: 45_000 },
  );

/** A job that posts to an endpoint which does not answer; the endpoint has the request. */
async function createHangingPost(sink: Sink, endpoint: string): Promise<JobRecord> {
  sink.respond(endpoint, () => undefined);
  const payload = { url: sink.url(endpoint), method: 'POST', timeoutMs: 60_000 };
  const job = await api.client
    .post<JobRecord>('/api/jobs', { type: 'http.request', payload })
    .expect(201);
  await eventually(
    () => sink.requestsTo(endpoint),
    (all) => all.length > 0,
  );
  return job;
}

async function expectOutcomeUnknown(job: JobRecord, sink: Sink, endpoint: string): Promise<void> {
  const done = await untilStatus(job.id, 'failed');
  expect(done).toMatchObject({
    attempts: 1,
    error: { code: 'outcome_unknown', message: expect.stringContaining('unknown') },
  });
  expect(sink.requestsTo(endpoint)).toHaveLength(1);
}

type Import = Static<typeof ImportRecord>;

/** Short jobs that are created while the worker is killed. */
const BURST = Array.from({ length: 40 }, (_, n) => n);
const IMPORTED_ROWS = 1_500 * killRounds();

const readImport = (id: string) => root.get<Import>(`/api/inventory/imports/${id}`).expect(200);

/** Imports prefixes, and stops the worker in the transaction that writes a row in the middle. */
async function startImport() {
  const stops = await stopUpdates(api.databaseUrl, 'import_rows', {
    'a row': 'OLD.line = 1100 AND NEW.outcome IS NOT NULL',
  });
  const cidrs = Array.from({ length: IMPORTED_ROWS }, (_, i) => `10.${i >> 8}.${i & 255}.0/24`);
  const sent = await root
    .post<Import>('/api/inventory/import?resource=prefixes', ['cidr', ...cidrs].join('\n'), {
      'content-type': 'text/csv',
    })
    .expect(202);
  return { ...sent, stops };
}

const PURGED_JOBS = 5_100;

/** Starts a purge, and stops it in the second of the two commits that delete the data of old jobs. */
async function startPurge() {
  const { db, housekeeping } = api.deps;
  const old = await seedJobs(db, { tenant: 'purged', days: 91, lines: 1, count: PURGED_JOBS });
  const stops = await stopUpdates(api.databaseUrl, 'jobs', {
    'the second commit': `NEW.id = '${old.at(-1)}' AND NEW.data_purged_at IS NOT NULL`,
  });
  await db('purge_state').update({ next_at: new Date(0) });
  await housekeeping.run(new AbortController().signal);
  const { id } = (await db('jobs').where({ type: 'retention.purge' }).first()) as { id: string };
  return { id, stops };
}

/** Kills a worker while rows are written, in runs that do more than by default. */
async function killAgain(importId: string): Promise<void> {
  for (let kills = 1; kills < killRounds(); kills++) {
    const before = (await readImport(importId)).done;
    await eventually(
      () => readImport(importId),
      ({ done }) => done > before || done === IMPORTED_ROWS,
      { withinMs: 45_000 },
    );
    await worker.replace();
  }
}

/** One kill meets all of these. */
describe('when a worker is killed and another one starts', () => {
  let sink: Sink;
  let repeated: JobRecord;
  let single: JobRecord;
  let posted: JobRecord;
  let cancelled: JobRecord;
  let together: string[];
  let imported: Awaited<ReturnType<typeof startImport>>;
  let purge: Awaited<ReturnType<typeof startPurge>>;
  let burst: JobRecord[];
  beforeAll(async () => {
    sink = await startSink();
    await worker.start();
    posted = await createHangingPost(sink, '/killed');
    purge = await startPurge();
    await purge.stops.untilStopped('the second commit');
    imported = await startImport();
    await imported.stops.untilStopped('a row');
    [repeated, single] = await Promise.all([sleepJob(3_000), sleepJob(3_000, 1)]);
    const retry = { initialIntervalSeconds: 0.1 };
    const payload = { durationMs: 3_000 };
    together = await startTogether(api, [
      { payload, retry },
      { payload, retry: { ...retry, maxAttempts: 1 } },
    ]);
    for (const id of [repeated.id, single.id, ...together]) await untilStatus(id, 'running');
    [burst] = await Promise.all([Promise.all(BURST.map((n) => echoJob({ n }))), worker.kill()]);
    await Promise.all([imported.stops.remove(), purge.stops.remove()]);
    // Alone, it has a run of its own.
    await eventually(
      () => api.deps.db('outbox').pluck('id'),
      (tasks) => tasks.length === 0,
    );
    const queued = await echoJob({});
    cancelled = await api.client.post<JobRecord>(`/api/jobs/${queued.id}/cancel`).expect(202);
    await worker.start();
    await killAgain(imported.id);
  }, 240_000);
  afterAll(() => sink.stop());

  test('it makes the next attempt of a job', async () => {
    const done = await untilStatus(repeated.id, 'succeeded');
    expect(done).toMatchObject({ attempts: 2, retryCount: 1 });
    const starts = done.logs.filter(({ message }) => message.includes('started'));
    expect(starts.map(({ attempt }) => attempt)).toEqual([1, 2]);
    const ends = await api.deps
      .db('events')
      .where({ subject_id: repeated.id, type: 'job.succeeded' });
    expect(ends).toHaveLength(1);
  });

  test('a job that may have one attempt only fails', async () => {
    const done = await untilStatus(single.id, 'failed');
    expect(done).toMatchObject({ attempts: 1, error: { code: 'worker_lost' } });
  });

  test('a POST is not sent again: the job says that the outcome is unknown', () =>
    expectOutcomeUnknown(posted, sink, '/killed'));

  test('a job that was cancelled without a worker never runs', async () => {
    expect(cancelled).toMatchObject({ status: 'cancelled', attempts: 0 });
    const state = await eventually(
      () => api.deps.describeWorkflow(`job:${cancelled.id}`),
      (s) => s.found && s.status !== 'running',
    );
    expect(state.found && ['cancelled', 'completed']).toContain(state.found && state.status);
    expect(await read(cancelled.id)).toMatchObject({
      status: 'cancelled',
      attempts: 0,
      startedAt: null,
    });
  });

  test('it makes the next attempts of a shared run', async () => {
    const [again = '', once = ''] = together;
    const done = await untilStatus(again, 'succeeded');
    expect(done).toMatchObject({ attempts: 2, workflowId: `jobs:${again}` });
    const starts = done.logs.filter(({ message }) => message.includes('started'));
    expect(starts.map(({ attempt }) => attempt)).toEqual([1, 2]);
    expect(await untilStatus(once, 'failed')).toMatchObject({
      attempts: 1,
      error: { code: 'worker_lost' },
    });
  });

  test('a burst of short jobs shares runs, and loses none of them', async () => {
    const ids = burst.map(({ id }) => id);
    const jobs = () => api.deps.db('jobs').whereIn('id', ids).orderBy('id');
    await eventually(
      () => jobs().whereNot('status', 'succeeded').pluck('id'),
      (unfinished) => unfinished.length === 0,
      { withinMs: 45_000 },
    );
    const runs: string[] = await jobs().pluck('workflow_id');
    expect(new Set(runs).size).toBeLessThan(BURST.length);
    const results: { n: number }[] = await jobs().pluck('result');
    expect(results.map(({ n }) => n).sort((one, other) => one - other)).toEqual(BURST);
    const ends: string[] = await api.deps
      .db('events')
      .whereIn('subject_id', ids)
      .where({ type: 'job.succeeded' })
      .pluck('subject_id');
    expect(ends.sort()).toEqual(ids.sort());
  });

  test('a purge deletes the rest, and nothing twice', async () => {
    const done = await eventually(
      () => root.get<JobRecord>(`/api/jobs/${purge.id}`).expect(200),
      ({ status }) => status === 'succeeded',
      { withinMs: 45_000 },
    );
    expect(done).toMatchObject({ attempts: 2, result: { complete: true } });
    const { db } = api.deps;
    const entries: { after: { kind: string; records: number } }[] = await db('audit_entries')
      .where({ tenant_id: 'purged', action: 'retention.purge' })
      .select('after');
    for (const kind of ['jobLogs', 'jobData']) {
      const counts = entries.flatMap(({ after }) => (after.kind === kind ? after.records : []));
      expect([kind, counts.reduce((sum, each) => sum + each, 0)]).toEqual([kind, PURGED_JOBS]);
    }
    const left = await db('jobs').where({ tenant_id: 'purged', data_purged_at: null }).pluck('id');
    expect(left).toEqual([]);
  });

  test('every row of an import is written once', async () => {
    const done = await eventually(
      () => readImport(imported.id),
      (now) => now.done === IMPORTED_ROWS,
      { withinMs: 90_000 },
    );
    const { created, ...others } = done.counts;
    expect([created, new Set(Object.values(others))]).toEqual([IMPORTED_ROWS, new Set([0])]);
    expect((await untilStatus(imported.jobId, 'succeeded')).attempts).toBeGreaterThan(1);
    const { db } = api.deps;
    const count = async (table: string, where: object = {}) =>
      Number((await db(table).where(where).count('* as n'))[0]?.n);
    expect([
      await count('prefixes'),
      await count('audit_entries', { action: 'inventory.prefix.create' }),
      await count('events', { type: 'inventory.prefix.created' }),
    ]).toEqual(Array(3).fill(IMPORTED_ROWS));
    const { rows } = await db.raw(
      'SELECT count(*) AS n FROM import_rows AS r JOIN prefixes AS p ON p.id = r.record_id',
    );
    expect(rows[0].n).toBe(IMPORTED_ROWS);
  }, 120_000);
});

test('a worker that is asked to stop exits cleanly, and another worker repeats what can be repeated', async () => {
  const sink = await startSink();
  try {
    await worker.start();
    const posted = await createHangingPost(sink, '/stopped');
    const job = await sleepJob(8_000);
    await untilStatus(job.id, 'running');
    expect(await worker.terminate()).toBe(0);
    expect(await read(job.id)).toMatchObject({ status: 'running', error: { code: 'interrupted' } });
    await worker.start();
    await expectOutcomeUnknown(posted, sink, '/stopped');
    const done = await untilStatus(job.id, 'succeeded');
    expect(done.attempts).toBe(2);
  } finally {
    await sink.stop();
  }
});
