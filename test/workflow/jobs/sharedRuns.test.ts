import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { claimAttempts } from '../../../db/jobs/jobs.ts';
import { startJobTask, startShortJobsTask } from '../../../domain/dispatch/tasks.ts';
import type { JobRecord } from '../../../api/jobs/schemas.ts';
import { insertJob } from '../../replay/scenarios.ts';
import { startApp, type TestApp } from '../../support/app.ts';
import { createJobAttempts } from '../../../services/jobs/attempts.ts';
import { createImmediateAttempts } from '../../../services/jobs/immediateAttempts.ts';
import { createRecordTogether } from '../../../services/jobs/recordTogether.ts';
import { createClient } from '../../support/client.ts';
import { eventually } from '../../support/eventually.ts';
import { killAll, startProcess } from '../../support/processes.ts';
import { startTask, startTogether, type Wanted } from '../../support/sharedRuns.ts';

let app: TestApp;
beforeAll(async () => {
  app = await startApp({ HOLDFAST_DISPATCH_GRACE_MS: '500' });
});
afterAll(async () => {
  await killAll();
  await app.stop();
});

const WAIT = { prefer: 'wait=20' };

const read = (id: string) => app.client.get<JobRecord>(`/api/jobs/${id}`).expect(200);
const untilStatus = (id: string, status: string) =>
  eventually(
    () => read(id),
    (job) => job.status === status,
    { withinMs: 45_000 },
  );
const messages = (job: JobRecord) => job.logs.map(({ line, message }) => [line, message]);
const auditOf = async (id: string): Promise<string[]> =>
  app.deps.db('audit_entries').where({ subject_id: id }).pluck('action');

test('jobs of one run succeed together, each with its own record, log, audit entry and event', async () => {
  const ids = await startTogether(
    app,
    [1, 2, 3].map(() => ({ payload: { durationMs: 1 } })),
  );
  for (const id of ids) {
    const done = await untilStatus(id, 'succeeded');
    expect(done).toMatchObject({
      attempts: 1,
      workflowId: `jobs:${ids[0]}`,
      result: { sleptMs: 1 },
    });
    expect(messages(done)).toEqual([
      [1, 'Attempt 1 started'],
      [2, 'Slept'],
      [3, 'Succeeded in attempt 1'],
    ]);
    expect(await auditOf(id)).toEqual(['job.succeed']);
    const events = await app.deps.db('events').where({ subject_id: id, type: 'job.succeeded' });
    expect(events).toHaveLength(1);
  }
});

test('a job that fails goes on in a run of its own, and the others do not notice', async () => {
  const quick = { initialIntervalSeconds: 0.1 };
  const failing = { durationMs: 1, failAttempts: 1 };
  const [fine, repeated, failed, cancelled, ended] = await startTogether(app, [
    { payload: { durationMs: 1 } },
    { payload: failing, retry: quick },
    { payload: failing, retry: { ...quick, maxAttempts: 1 } },
    { payload: failing, retry: quick, cancelRequested: true },
    { payload: failing, alreadyFinished: true },
  ]);
  expect(await untilStatus(fine ?? '', 'succeeded')).toMatchObject({ attempts: 1 });
  expect(await untilStatus(repeated ?? '', 'succeeded')).toMatchObject({
    attempts: 2,
    workflowId: `job:${repeated}`,
  });
  const end = await untilStatus(failed ?? '', 'failed');
  expect(end).toMatchObject({
    attempts: 1,
    error: { code: 'sleep_failed', message: 'Asked to fail 1 attempt' },
  });
  const run = await eventually(
    () => app.deps.describeWorkflow(`job:${failed}`),
    (state) => state.found && state.status !== 'running',
  );
  expect(run).toMatchObject({ found: true, status: 'failed' });
  expect(await untilStatus(cancelled ?? '', 'cancelled')).toMatchObject({ attempts: 1 });
  expect(await read(ended ?? '')).toMatchObject({ status: 'cancelled', attempts: 0 });
});

test('a job between its shared run and its own is cancelled immediately', async () => {
  const retry = { initialIntervalSeconds: 600, maxIntervalSeconds: 600 };
  const [id = ''] = await startTogether(app, [
    { payload: { durationMs: 1, failAttempts: 1 }, retry },
    { payload: { durationMs: 1 } },
  ]);
  await eventually(
    () => app.deps.db('jobs').where({ id, run_id: null, status: 'running' }).pluck('id'),
    (found: string[]) => found.length === 1,
  );
  await app.client.post(`/api/jobs/${id}/cancel`).expect(202);
  expect(await read(id)).toMatchObject({ status: 'cancelled', attempts: 1 });
  await eventually(
    () => app.deps.describeWorkflow(`job:${id}`),
    (state) => !state.found || state.status !== 'running',
  );
  expect(await read(id)).toMatchObject({ status: 'cancelled', attempts: 1 });
});

/** Claims new jobs as a shared run does. Returns the claimed ones, and whether the commit is flushed. */
async function claim(wanted: readonly Wanted[]) {
  const jobIds = wanted.map(() => app.deps.ids.next('job'));
  const run = { runId: 'shared', workflowId: 'jobs:shared', needsSlot: false, isShort: true };
  const trx = await app.deps.db.transaction();
  try {
    for (const [n, id] of jobIds.entries()) {
      const job = wanted[n];
      if (job) await insertJob({ deps: { db: trx } }, id, job);
    }
    const claims = async () => claimAttempts(trx, { ...run, jobIds, now: new Date() });
    const first = await claims();
    const { rows } = await trx.raw<{ rows: [{ synchronous_commit: string }] }>(
      'SHOW synchronous_commit',
    );
    await trx('jobs').whereIn('id', jobIds).update({ cancel_requested_at: new Date() });
    return { first, flushed: rows[0].synchronous_commit !== 'off', repeated: await claims() };
  } finally {
    await trx.rollback();
  }
}

test('a claim is flushed if one of its jobs must not be repeated', async () => {
  const payload = { durationMs: 1 };
  const single = { payload, retry: { maxAttempts: 1 } };
  expect(await claim([{ payload }, { payload }])).toMatchObject({ flushed: false });
  expect(await claim([{ payload }, single])).toMatchObject({ flushed: true });
});

test('a shared run does not repeat a job whose cancellation was requested', async () => {
  const { first, repeated } = await claim([{ payload: { durationMs: 1 } }]);
  expect([first.length, repeated.length]).toEqual([1, 0]);
});

test('a job goes on although its own run has ended while a shared run had it', async () => {
  const { db, ids } = app.deps;
  const id = ids.next('job');
  const firstAttempt = { code: 'sleep_failed', retryInMs: 0 };
  await insertJob(app, id, { payload: { durationMs: 1 }, firstAttempt });
  await db('jobs').where({ id }).update({ run_id: 'shared', workflow_id: 'jobs:shared' });
  const settings = { lane: 'inline', timeoutMs: 8_000, heartbeatMs: 1_000 } as const;
  const job = { id, type: 'core.sleep', tenantId: 'platform' };
  await startTask(app, startJobTask(job, settings));
  await eventually(
    () => app.deps.describeWorkflow(`job:${id}`),
    (state) => state.found && state.status === 'completed',
  );
  await db('jobs').where({ id }).update({ run_id: null, workflow_id: null });
  await startTask(app, startJobTask(job, { ...settings, firstAttempt }));
  expect(await untilStatus(id, 'succeeded')).toMatchObject({ attempts: 2 });
});

/** Jobs whose process has died during their first attempts, which were to be in one run. */
async function leave(wanted: readonly Wanted[], leaseMs: number): Promise<string[]> {
  const ids = wanted.map(() => app.deps.ids.next('job'));
  for (const [n, id] of ids.entries()) {
    const job = wanted[n];
    if (job) await insertJob(app, id, job);
  }
  await app.deps
    .db('jobs')
    .whereIn('id', ids)
    .update({
      status: 'running',
      attempts: 1,
      run_id: 'dead process',
      workflow_id: `jobs:${ids[0]}`,
      leased_until: new Date(Date.now() + leaseMs),
    });
  return ids;
}

test.each(['shared', 'own'])(
  'the %s run of jobs goes on with them when the lease of their process has expired',
  async (whose) => {
    const payload = { durationMs: 1 };
    const jobs = [
      { payload },
      { payload, retry: { maxAttempts: 1 } },
      { payload, cancelRequested: true },
    ];
    const leasedAt = Date.now();
    const ids = await leave(jobs, 1_500);
    const settings = { lane: 'inline', timeoutMs: 8_000, heartbeatMs: 1_000 } as const;
    const tasks = ids.map((id) =>
      startJobTask({ id, type: 'core.sleep', tenantId: 'platform' }, settings),
    );
    const [first, ...others] = tasks;
    if (first && whose === 'shared')
      await startTask(app, startShortJobsTask(first.input.jobId, first, others));
    else for (const task of tasks) await startTask(app, task);
    const [repeated = '', single = '', cancelled = ''] = ids;
    const done = await untilStatus(repeated, 'succeeded');
    expect(done).toMatchObject({
      attempts: 2,
      workflowId: whose === 'shared' ? `jobs:${repeated}` : `job:${repeated}`,
    });
    expect(Date.parse(done.logs[0]?.at ?? '') - leasedAt).toBeGreaterThan(1_400);
    const error = { code: 'worker_lost' };
    expect(await untilStatus(single, 'failed')).toMatchObject({ attempts: 1, error });
    expect(await untilStatus(cancelled, 'cancelled')).toMatchObject({ attempts: 1 });
  },
);

/** A job whose process makes its first attempt; with `null`, one that waits for its own run after it. */
async function leased(runId: string | null): Promise<string> {
  const id = app.deps.ids.next('job');
  const firstAttempt = { code: 'sleep_failed', retryInMs: null };
  await insertJob(app, id, { payload: { durationMs: 1 }, firstAttempt });
  const leasedUntil = runId === null ? null : new Date(Date.now() + 60_000);
  await app.deps.db('jobs').where({ id }).update({ run_id: runId, leased_until: leasedUntil });
  return id;
}
const stateOf = (id: string) =>
  app.deps.db('jobs').where({ id }).first('status', 'attempts', 'run_id', 'error');

test('a process that comes too late does not end a job that waits for its own run', async () => {
  const id = await leased(null);
  const late = { code: 'sleep_failed', retryInMs: 0 };
  await app.deps.sharedRuns.goOnAlone({ runId: 'late process' }, id, 1_000, late);
  expect(await stateOf(id)).toMatchObject({ status: 'running', attempts: 1 });
  expect(await app.deps.db('outbox').where({ workflow_id: `job:${id}` })).toEqual([]);
});

test('a run does not fail a job that its process leaves in this moment', async () => {
  const id = await leased('process');
  const { deps } = app;
  const attempts = createJobAttempts({
    ...deps,
    admissionChecks: {},
    async writeUnaudited(statement) {
      const claimed = await deps.writeUnaudited(statement);
      await deps.db('jobs').where({ id }).update({ run_id: null, leased_until: null });
      return claimed;
    },
  });
  const { signal } = new AbortController();
  await expect(
    attempts.runAttempt({ jobId: id, runId: 'own run' }, 'inline', signal),
  ).rejects.toMatchObject({ code: 'claim_lost', retryInMs: 0 });
});

test('the last attempt is not repeated by a start that was not made while Temporal was away', async () => {
  const id = await leased('process');
  const { db, ids, sharedRuns } = app.deps;
  const job = { id, type: 'core.sleep', tenantId: 'platform' };
  const settings = { lane: 'inline', timeoutMs: 8_000, heartbeatMs: 1_000 } as const;
  const task = startJobTask(job, settings);
  const outboxId = ids.next('out');
  const later = new Date(Date.now() + 3_600_000);
  await db('outbox').insert({
    id: outboxId,
    workflow_id: task.workflowId,
    task: JSON.stringify(task),
    available_at: later,
    created_at: later,
  });
  const last = { code: 'sleep_failed', retryInMs: null };
  await sharedRuns.goOnAlone({ runId: 'process' }, id, 8_000, last);
  expect(await db('outbox').where({ id: outboxId })).toEqual([]);
  expect(await untilStatus(id, 'failed')).toMatchObject({ attempts: 1 });
});

test('a process that stops leaves its attempts to the runs of their jobs', async () => {
  const { deps } = app;
  const [id, jobId] = [deps.ids.next('out'), deps.ids.next('job')];
  await insertJob(app, jobId, { payload: { durationMs: 700 } });
  const recordTogether = createRecordTogether(deps);
  const stopping = createImmediateAttempts({ ...deps, recordTogether, stopGraceMs: 0 });
  stopping.start();
  const jobs = { workflowId: `jobs:${id}`, tenantId: 'platform', jobIds: [jobId] };
  const made = stopping.make({ ...jobs, timeoutMs: 60_000 });
  await eventually(
    () => stateOf(jobId),
    ({ status }) => status === 'running',
  );
  await stopping.stop();
  await made;
  expect(await untilStatus(jobId, 'succeeded')).toMatchObject({
    attempts: 2,
    workflowId: `job:${jobId}`,
  });
});

test('when a process is killed that makes attempts itself, no short job is lost', async () => {
  const whole = await startProcess({ ...app.env, HOLDFAST_ROLE: 'all' });
  const client = createClient(whole.base);
  const post = () => client.post<JobRecord>('/api/jobs', { type: 'core.echo', payload: {} });
  // The worker of a new process needs a while; jobs before that have a run of their own.
  await eventually(
    async () => (await client.get<JobRecord>(`/api/jobs/${(await post()).body.id}`, WAIT)).body,
    ({ workflowId }) => workflowId?.startsWith('jobs:') === true,
  );
  const answered: string[] = [];
  const burst = Array.from({ length: 30 }, () =>
    post().then(
      ({ body }) => void answered.push(body.id),
      () => undefined,
    ),
  );
  await eventually(
    () => answered,
    ({ length }) => length >= 10,
  );
  await whole.kill();
  await Promise.all(burst);
  for (const id of answered) await untilStatus(id, 'succeeded');
});
