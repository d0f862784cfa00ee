import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { TypedSearchAttributes, defineSearchAttributeKey } from '@temporalio/common';
import { Type } from 'typebox';
import { claimOutbox } from '../../../db/core/outbox.ts';
import { startJobTask } from '../../../domain/dispatch/tasks.ts';
import { defineJobType } from '../../../domain/jobs/jobType.ts';
import { SEARCH_ATTRIBUTES, systemScheduleId } from '../../../domain/dispatch/workflowIds.ts';
import { AttemptFailed } from '../../../services/jobs/lifecycle.ts';
import { createMultiStepJobs } from '../../../services/jobs/multiStep.ts';
import { jobCancelTopic } from '../../../services/jobs/jobAudit.ts';
import { createTemporalConnection } from '../../../temporal/connection.ts';
import { isTransient, executeTask } from '../../../temporal/executeTask.ts';
import type { JobRecord } from '../../../api/jobs/schemas.ts';
import { startApp, type TestApp } from '../../support/app.ts';
import { eventually } from '../../support/eventually.ts';

let app: TestApp;
beforeAll(async () => {
  app = await startApp(
    { HOLDFAST_RECONCILE_SECONDS: '1' },
    { extraJobTypes: [forgotten, held, inSteps] },
  );
});
afterAll(() => app.stop());

/** A job type whose first claim is lost while it runs, as in a crash of PostgreSQL. */
let runs = 0;
const forgotten = defineJobType({
  name: 'test.forgotten',
  summary: 'Loses its first claim',
  payload: Type.Object({}),
  lane: 'inline',
  timeoutMs: 5_000,
  async run(_payload, { jobId }) {
    runs += 1;
    const unclaimed = { status: 'queued', run_id: null, attempts: 0, started_at: null };
    if (runs === 1) await app.deps.db('jobs').where({ id: jobId }).update(unclaimed);
    return {};
  },
});

/** A short job that runs until the test ends it, or until it is cancelled. */
let endHeld: () => void = () => undefined;
const held = defineJobType({
  name: 'test.held',
  summary: 'Runs until it is ended',
  payload: Type.Object({}),
  lane: 'inline',
  timeoutMs: 20_000,
  run: (_payload, { signal }) =>
    new Promise((resolve, reject) => {
      endHeld = () => resolve({});
      signal.addEventListener('abort', () => reject(signal.reason as Error));
    }),
});

/** A job whose child workflow no worker knows, so that it does not end. */
const inSteps = defineJobType({
  name: 'test.steps',
  summary: 'Waits for its child workflow',
  payload: Type.Object({}),
  lane: 'workflow',
  timeoutMs: 60_000,
  prepare: (_payload, { jobId }) =>
    Promise.resolve({
      ...{ workflow: 'unknown', workflowId: `steps:${jobId}`, input: {} },
      ...{ summary: 'steps', record: jobId },
    }),
  result: () => Promise.resolve({}),
});

const WAIT = { prefer: 'wait=20' };
const read = (id: string) => app.client.get<JobRecord>(`/api/jobs/${id}`).expect(200);
const readFinished = (id: string) => app.client.get<JobRecord>(`/api/jobs/${id}`, WAIT).expect(200);
const echoJob = (payload: object = {}) =>
  app.client.post<JobRecord>('/api/jobs', { type: 'core.echo', payload }, WAIT).expect(201);
const sleepJob = async (durationMs = 60_000) => {
  const body = { type: 'core.sleep', payload: { durationMs } };
  const { id } = await app.client.post<JobRecord>('/api/jobs', body).expect(201);
  return eventually(
    () => read(id),
    (job) => job.status === 'running',
  );
};
const temporal = <T>(work: Parameters<typeof app.deps.temporal.call<T>>[1]) =>
  app.deps.temporal.call(20_000, work);
const queue = () => app.deps.config.taskQueue;

test('a workflow has a summary and search attributes, and no data of the job', async () => {
  // While the worker starts, jobs have a run of their own.
  const job = await eventually(
    () => echoJob({ password: 'hunter2-secret' }),
    ({ workflowId }) => workflowId?.startsWith('jobs:') === true,
  );
  const { description, history } = await temporal(async (client) => {
    const handle = client.workflow.getHandle(job.workflowId ?? '');
    await stateOf(job.workflowId, 'completed');
    return { description: await handle.describe(), history: await handle.fetchHistory() };
  });
  expect(await description.staticSummary()).toBe('core.echo');
  // Temporal adds attributes of its own.
  const ours = description.typedSearchAttributes
    .getAll()
    .filter(({ key }) => key.name.startsWith('Holdfast'));
  expect(Object.fromEntries(ours.map(({ key, value }) => [key.name, value]))).toEqual({
    [SEARCH_ATTRIBUTES.tenant]: 'platform',
    [SEARCH_ATTRIBUTES.jobType]: 'core.echo',
    [SEARCH_ATTRIBUTES.record]: job.id,
  });
  const started = history.events?.[0]?.workflowExecutionStartedEventAttributes;
  expect(started?.priority).toMatchObject({ priorityKey: 3, fairnessKey: 'platform' });
  expect(Buffer.from(JSON.stringify(history)).toString()).not.toContain('hunter2');
  const data =
    history.events?.flatMap(
      (e) => e.workflowExecutionStartedEventAttributes?.input?.payloads ?? [],
    ) ?? [];
  expect(
    data.map((p) => Object.keys(JSON.parse(Buffer.from(p.data ?? []).toString())).sort()),
  ).toEqual([['jobIds', 'timeoutMs']]);
});

test('workflows can be found in Temporal by tenant and job type', async () => {
  const job = await app.client
    .as({ tenant: 'finder' })
    .post<JobRecord>('/api/jobs', { type: 'core.echo', payload: {} }, WAIT)
    .expect(201);
  const query = `${SEARCH_ATTRIBUTES.tenant} = "finder" AND ${SEARCH_ATTRIBUTES.jobType} = "core.echo"`;
  await eventually(
    () => temporal((client) => client.workflow.count(query)),
    ({ count }) => count === 1,
  );
  expect(job.status).toBe('succeeded');
});

test('a short job whose claim PostgreSQL has lost is run again', async () => {
  const done = await app.client
    .post<JobRecord>('/api/jobs', { type: 'test.forgotten', payload: {} }, WAIT)
    .expect(201);
  expect(done).toMatchObject({ status: 'succeeded', attempts: 1 });
  expect(runs).toBe(2);
});

const heldJob = async () => {
  const body = { type: 'test.held', payload: {} };
  const { id } = await app.client.post<JobRecord>('/api/jobs', body).expect(201);
  return eventually(
    () => read(id),
    (job) => job.status === 'running',
  );
};
const stateOf = (workflowId: string | null, wanted: string) =>
  eventually(
    () => app.deps.describeWorkflow(workflowId ?? ''),
    (state) => state.found && state.status === wanted,
  );

test('the workflow of a short job waits for the attempt that is made already', async () => {
  const job = await heldJob();
  await stateOf(job.workflowId, 'running');
  expect(await read(job.id)).toMatchObject({ status: 'running', attempts: 1 });
  endHeld();
  expect(await readFinished(job.id)).toMatchObject({ status: 'succeeded', attempts: 1 });
  await stateOf(job.workflowId, 'completed');
});

test('an attempt goes on when only the connection for notifications was lost', async () => {
  const job = await heldJob();
  // As after each new connection: all listeners are to look for changes.
  app.deps.notifications.announce([jobCancelTopic(job.id)]);
  endHeld();
  expect(await readFinished(job.id)).toMatchObject({ status: 'succeeded', attempts: 1 });
});

test('a cancellation ends the attempt of a short job', async () => {
  const job = await heldJob();
  await app.client.post(`/api/jobs/${job.id}/cancel`).expect(202);
  expect(await readFinished(job.id)).toMatchObject({ status: 'cancelled', attempts: 1 });
});

test('repeating a start task starts no second workflow', async () => {
  const job = await echoJob();
  const task = startJobTask(
    { id: job.id, type: job.type, tenantId: 'platform' },
    { lane: 'inline', timeoutMs: 5_000, heartbeatMs: 1_000 },
  );
  await temporal((client) =>
    executeTask(client, task, {
      taskQueue: queue(),
      eager: true,
      workflowTaskTimeoutMs: 10_000,
      syncSchedule: () => Promise.resolve(),
    }),
  );
  expect(await read(job.id)).toMatchObject({ attempts: 1, version: job.version });
});

test('a second workflow of the same job does nothing', async () => {
  const job = await sleepJob(1_500);
  await temporal((client) =>
    client.workflow.execute('job', {
      workflowId: `second:${job.id}`,
      taskQueue: queue(),
      args: [{ jobId: job.id, lane: 'inline', timeoutMs: 5_000, heartbeatMs: 1_000 }],
    }),
  );
  expect(await read(job.id)).toMatchObject({ status: 'running', attempts: 1 });
  expect(await readFinished(job.id)).toMatchObject({ status: 'succeeded', attempts: 1 });
});

test('concurrent relays never claim the same task', async () => {
  const { db } = app.deps;
  const rows = Array.from({ length: 40 }, (_, i) => ({
    id: `out_claim${String(i).padStart(2, '0')}`,
    workflow_id: `job:claim${i}`,
    task: JSON.stringify({ kind: 'cancel', tenantId: 'platform', workflowId: `job:claim${i}` }),
    available_at: new Date(Date.now() + 3_600_000),
    created_at: new Date(),
  }));
  await db('outbox').insert(rows);
  const later = new Date(Date.now() + 7_200_000);
  const claims = await Promise.all(
    Array.from({ length: 8 }, () => claimOutbox(db, { now: later, leaseMs: 1_000, limit: 10 })),
  );
  const ids = claims.flat().map((row) => row.id);
  expect(new Set(ids).size).toBe(ids.length);
  await db('outbox').where('id', 'like', 'out_claim%').delete();
});

test('the job of a terminated workflow fails', async () => {
  const job = await sleepJob();
  await temporal((client) => client.workflow.getHandle(`job:${job.id}`).terminate('by hand'));
  const done = await eventually(
    () => read(job.id),
    (state) => state.status === 'failed',
  );
  expect(done).toMatchObject({ error: { code: 'workflow_terminated' } });
  expect(done.logs.at(-1)?.message).toContain('workflow_terminated');
});

test('a job whose child workflow is terminated says so', async () => {
  const { id } = await app.client
    .post<JobRecord>('/api/jobs', { type: 'test.steps', payload: {} })
    .expect(201);
  await stateOf(`steps:${id}`, 'running');
  await temporal((client) => client.workflow.getHandle(`steps:${id}`).terminate('by hand'));
  expect(await readFinished(id)).toMatchObject({ error: { code: 'workflow_terminated' } });
});

test('a job whose run is reset in Temporal is continued by the new run', async () => {
  const { id, workflowId } = await sleepJob(3_000);
  const { runId } = await temporal(async (client) => {
    const handle = client.workflow.getHandle(workflowId ?? '');
    const { events } = await handle.fetchHistory();
    const claimed = events?.find((event) => event.workflowTaskCompletedEventAttributes);
    const description = await handle.describe();
    return client.workflowService.resetWorkflowExecution({
      namespace: app.deps.temporal.namespace,
      workflowExecution: { workflowId, runId: description.runId },
      reason: 'by hand',
      requestId: randomUUID(),
      workflowTaskFinishEventId: claimed?.eventId ?? null,
    });
  });
  expect(await readFinished(id)).toMatchObject({ status: 'succeeded', attempts: 2 });
  expect(await app.deps.db('jobs').where({ id }).first('run_id')).toEqual({ run_id: runId });
});

test.each(['activity', 'delivery'])(
  'Temporal ends no attempt of the lane %s whose type has got a higher limit',
  async (lane) => {
    const workflowId = `limit:${lane}`;
    const input = { jobId: 'job_none', lane, timeoutMs: 5_000, heartbeatMs: 1_000 };
    const { events } = await temporal(async ({ workflow }) => {
      const options = { workflowId, taskQueue: queue(), args: [input] };
      const handle = await workflow.start('job', options);
      await handle.result().catch(() => undefined);
      return handle.fetchHistory();
    });
    const scheduled = (events ?? []).flatMap(
      (event) => event.activityTaskScheduledEventAttributes ?? [],
    );
    expect(scheduled.map((each) => Number(each.startToCloseTimeout?.seconds))).toEqual([86_470]);
  },
);

test('a run takes over nothing while another one is open', async () => {
  const { id } = await sleepJob();
  expect(await app.deps.jobAttempts.takeOver({ jobId: id, runId: randomUUID() })).toBe(false);
  await app.client.post(`/api/jobs/${id}/cancel`).expect(202);
  expect(await readFinished(id)).toMatchObject({ status: 'cancelled', attempts: 1 });
});

test('a job with several steps that waits for its slot waits outside of workflow tasks', async () => {
  const { deps } = app;
  const jobSlots = { claim: () => Promise.reject(new AttemptFailed('no_slot', 700)) };
  const steps = createMultiStepJobs({
    ...deps,
    jobSlots,
  } as unknown as Parameters<typeof createMultiStepJobs>[0]);
  const waiting = steps.start({ jobId: 'job_1', runId: 'run_1' });
  const failure: unknown = await waiting.catch((error: unknown) => error);
  expect(failure).toMatchObject({ code: 'no_slot' });
  // `localRetryThreshold` of the workflow.
  expect((failure as AttemptFailed).retryInMs).toBeGreaterThan(5_000);
});

test('the job of a deleted workflow fails', async () => {
  const job = await sleepJob();
  await temporal((client) =>
    client.workflowService.deleteWorkflowExecution({
      namespace: 'default',
      workflowExecution: { workflowId: job.workflowId },
    }),
  );
  const done = await eventually(
    () => read(job.id),
    (state) => state.status === 'failed',
  );
  expect(['workflow_lost', 'workflow_terminated']).toContain(done.error?.code);
});

test('a queued job without workflow and outbox task is started', async () => {
  const [row] = await app.deps.db('jobs').where({ id: (await echoJob()).id });
  const id = 'job_00000000000000000000000001';
  await app.deps.db('jobs').insert({
    ...row,
    id,
    status: 'queued',
    attempts: 0,
    log_count: 0,
    run_id: null,
    workflow_id: null,
    finished_at: null,
    started_at: null,
    result: null,
    payload: '{}',
    retry_policy: JSON.stringify(row.retry_policy),
    authority: JSON.stringify(row.authority),
  });
  const done = await eventually(
    () => read(id),
    (job) => job.status === 'succeeded',
  );
  expect(done.attempts).toBe(1);
  const audit = await app.deps
    .db('audit_entries')
    .where({ subject_id: id, action: 'job.redispatch' })
    .first();
  expect(audit.actor_id).toBe('system');
});

test('a job whose process died before its workflow was started is made again', async () => {
  const [row] = await app.deps.db('jobs').where({ id: (await echoJob()).id });
  const id = 'job_00000000000000000000000002';
  await app.deps.db('jobs').insert({
    ...row,
    id,
    status: 'running',
    run_id: 'dead process',
    workflow_id: 'jobs:never-started',
    leased_until: new Date(),
    finished_at: null,
    result: null,
    payload: '{}',
    retry_policy: JSON.stringify(row.retry_policy),
    authority: JSON.stringify(row.authority),
  });
  expect(await readFinished(id)).toMatchObject({
    status: 'succeeded',
    attempts: 2,
    workflowId: `job:${id}`,
  });
});

test('a Temporal Schedule starts the reconciler', async () => {
  const described = await temporal((client) =>
    client.schedule.getHandle(systemScheduleId(queue(), 'reconcile')).describe(),
  );
  expect(described.info.recentActions.length).toBeGreaterThan(0);
});

test('a job fails before its attempt when its creator has lost the permission', async () => {
  const request = {
    type: 'core.sleep',
    payload: { durationMs: 1, failAttempts: 1 },
    retryPolicy: { initialIntervalSeconds: 2 },
  };
  const { id } = await app.client.post<JobRecord>('/api/jobs', request).expect(201);
  await eventually(
    () => read(id),
    (job) => job.error !== null,
  );
  const authority = JSON.stringify({
    actorId: 'alice',
    grants: [{ roleId: 'viewer', tenantId: 'platform' }],
  });
  await app.deps.db('jobs').where({ id }).update({ authority });
  expect(await readFinished(id)).toMatchObject({
    status: 'failed',
    attempts: 2,
    error: { code: 'permission_lost' },
  });
});

const unknownAttribute = new TypedSearchAttributes([
  { key: defineSearchAttributeKey('NoSuchAttribute', 'KEYWORD'), value: 'x' },
]);

test('a call that Temporal rejects does not count as an outage', async () => {
  const refused = temporal((client) =>
    client.workflow.start('job', {
      workflowId: 'refused',
      taskQueue: queue(),
      typedSearchAttributes: unknownAttribute,
    }),
  );
  expect(isTransient(await refused.catch((error: unknown) => error))).toBe(false);
  const unreachable = createTemporalConnection({
    address: '127.0.0.1:1',
    namespace: 'default',
    apiKey: undefined,
    tls: null,
    codecKeys: [],
  });
  expect(isTransient(await unreachable.check(500).catch((error: unknown) => error))).toBe(true);
  await unreachable.close();
});
