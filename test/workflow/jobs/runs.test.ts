import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { TypedSearchAttributes, defineSearchAttributeKey } from '@temporalio/common';
import { claimOutbox } from '../../../db/core/outbox.ts';
import { SEARCH_ATTRIBUTES, startJob, systemScheduleId } from '../../../temporal/contracts.ts';
import { createTemporalLink } from '../../../temporal/connection.ts';
import { isTransient, perform } from '../../../temporal/executeTask.ts';
import { startApp, type TestApp } from '../../support/app.ts';
import { eventually } from '../../support/eventually.ts';

let app: TestApp;
beforeAll(async () => {
  app = await startApp({ HOLDFAST_RECONCILE_SECONDS: '1' });
});
afterAll(() => app.stop());

const WAIT = { prefer: 'wait=20' };
const read = async (id: string) => (await app.client.get(`/api/jobs/${id}`)).body;
const sleepJob = async (durationMs = 60_000) => {
  const { body } = await app.client.post('/api/jobs', {
    type: 'core.sleep',
    payload: { durationMs },
  });
  return eventually(
    () => read(body.id),
    (job) => job.status === 'running',
  );
};
const temporal = <T>(work: Parameters<typeof app.deps.link.call<T>>[1]) =>
  app.deps.link.call(10_000, work);
const queue = () => app.deps.config.taskQueue;

test('a run carries summary and search attributes, and no data of the job', async () => {
  const { body } = await app.client.post(
    '/api/jobs',
    { type: 'core.echo', payload: { password: 'hunter2-secret' } },
    WAIT,
  );
  const { description, history } = await temporal(async (client) => {
    const handle = client.workflow.getHandle(body.workflowId);
    return { description: await handle.describe(), history: await handle.fetchHistory() };
  });
  expect(await description.staticSummary()).toBe('core.echo');
  // Temporal adds some of its own, sooner or later.
  const ours = description.typedSearchAttributes
    .getAll()
    .filter(({ key }) => key.name.startsWith('Holdfast'));
  expect(Object.fromEntries(ours.map(({ key, value }) => [key.name, value]))).toEqual({
    [SEARCH_ATTRIBUTES.tenant]: 'platform',
    [SEARCH_ATTRIBUTES.jobType]: 'core.echo',
    [SEARCH_ATTRIBUTES.record]: body.id,
  });
  expect(Buffer.from(JSON.stringify(history)).toString()).not.toContain('hunter2');
  const data =
    history.events?.flatMap(
      (e) => e.workflowExecutionStartedEventAttributes?.input?.payloads ?? [],
    ) ?? [];
  expect(
    data.map((p) => Object.keys(JSON.parse(Buffer.from(p.data ?? []).toString())).sort()),
  ).toEqual([['heartbeatMs', 'jobId', 'lane', 'timeoutMs']]);
});

test('runs are found in Temporal by tenant and type', async () => {
  const { body } = await app.client
    .as({ tenant: 'finder' })
    .post('/api/jobs', { type: 'core.echo', payload: {} }, WAIT);
  const query = `${SEARCH_ATTRIBUTES.tenant} = "finder" AND ${SEARCH_ATTRIBUTES.jobType} = "core.echo"`;
  await eventually(
    () => temporal((client) => client.workflow.count(query)),
    ({ count }) => count === 1,
  );
  expect(body.status).toBe('succeeded');
});

test('a start that is made twice starts once', async () => {
  const { body } = await app.client.post('/api/jobs', { type: 'core.echo', payload: {} }, WAIT);
  const task = startJob(
    { id: body.id, type: body.type, tenantId: 'platform' },
    { lane: 'inline', timeoutMs: 5_000, heartbeatMs: 1_000 },
  );
  await temporal((client) =>
    perform(client, task, { taskQueue: queue(), eager: true, mirror: () => Promise.resolve() }),
  );
  expect(await read(body.id)).toMatchObject({ attempts: 1, version: body.version });
});

test('a second run of the same job does nothing', async () => {
  const job = await sleepJob(1_500);
  await temporal((client) =>
    client.workflow.execute('job', {
      workflowId: `second:${job.id}`,
      taskQueue: queue(),
      args: [{ jobId: job.id, lane: 'inline', timeoutMs: 5_000, heartbeatMs: 1_000 }],
    }),
  );
  expect(await read(job.id)).toMatchObject({ status: 'running', attempts: 1 });
  const done = await app.client.get(`/api/jobs/${job.id}`, WAIT);
  expect(done.body).toMatchObject({ status: 'succeeded', attempts: 1 });
});

test('two relays at once never take the same row', async () => {
  const { db } = app.deps;
  const rows = Array.from({ length: 40 }, (_, i) => ({
    id: `out_claim${String(i).padStart(2, '0')}`,
    workflow_id: `job:claim${i}`,
    task: JSON.stringify({ kind: 'cancel', workflowId: `job:claim${i}` }),
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

test('a workflow that somebody terminated leaves no job running', async () => {
  const job = await sleepJob();
  await temporal((client) => client.workflow.getHandle(job.workflowId).terminate('by hand'));
  const done = await eventually(
    () => read(job.id),
    (state) => state.status === 'failed',
  );
  expect(done).toMatchObject({ error: { code: 'workflow_terminated' } });
  expect(done.logs.at(-1).message).toContain('workflow_terminated');
});

test('a job whose workflow is gone is settled', async () => {
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
  expect(['workflow_lost', 'workflow_terminated']).toContain(done.error.code);
});

test('a queued job whose start was lost is started', async () => {
  const { body } = await app.client.post('/api/jobs', { type: 'core.echo', payload: {} }, WAIT);
  const [row] = await app.deps.db('jobs').where({ id: body.id });
  const id = 'job_00000000000000000000000001';
  await app.deps.db('jobs').insert({
    ...row,
    id,
    status: 'queued',
    attempts: 0,
    log_count: 0,
    run_id: null,
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

test('the reconciler runs as a schedule of the system', async () => {
  const described = await temporal((client) =>
    client.schedule.getHandle(systemScheduleId(queue(), 'reconcile')).describe(),
  );
  expect(described.info.recentActions.length).toBeGreaterThan(0);
});

test('a creator who has lost the right: the job fails before it does anything', async () => {
  const { body } = await app.client.post('/api/jobs', {
    type: 'core.sleep',
    payload: { durationMs: 1, failAttempts: 1 },
    retryPolicy: { initialIntervalSeconds: 2 },
  });
  await eventually(
    () => read(body.id),
    (job) => job.error !== null,
  );
  const authority = JSON.stringify({
    actorId: 'alice',
    grants: [{ roleId: 'viewer', tenantId: 'platform' }],
  });
  await app.deps.db('jobs').where({ id: body.id }).update({ authority });
  const done = await app.client.get(`/api/jobs/${body.id}`, WAIT);
  expect(done.body).toMatchObject({
    status: 'failed',
    attempts: 2,
    error: { code: 'permission_lost' },
  });
});

const unknownAttribute = new TypedSearchAttributes([
  { key: defineSearchAttributeKey('NoSuchAttribute', 'KEYWORD'), value: 'x' },
]);

test('a call that Temporal refuses is not taken for an outage', async () => {
  const refused = temporal((client) =>
    client.workflow.start('job', {
      workflowId: 'refused',
      taskQueue: queue(),
      typedSearchAttributes: unknownAttribute,
    }),
  );
  expect(isTransient(await refused.catch((error: unknown) => error))).toBe(false);
  const away = createTemporalLink({
    address: '127.0.0.1:1',
    namespace: 'default',
    apiKey: undefined,
    tls: null,
    codecKeys: [],
  });
  expect(isTransient(await away.check(500).catch((error: unknown) => error))).toBe(true);
  await away.close();
});
