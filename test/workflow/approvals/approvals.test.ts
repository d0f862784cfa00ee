import { describe, expect, test } from '@jest/globals';
import type { JobRecord } from '../../../api/jobs/schemas.ts';
import type { ApprovalSignal } from '../../../domain/dispatch/tasks.ts';
import {
  approve,
  cancel,
  echoJob,
  eventTypesOf,
  createPrefix,
  readRequest,
  createRequest,
  auditActionsOf,
  reject,
  sleepJob,
  untilExecution,
  untilStatus,
  withApprovals,
} from '../../support/approvals.ts';
import type { ProblemBody, TestClient } from '../../support/client.ts';
import { eventually } from '../../support/eventually.ts';

const { fixture, users } = withApprovals({ HOLDFAST_RECONCILE_SECONDS: '2' });

type ApprovalHandle = ReturnType<
  Awaited<
    Parameters<Parameters<typeof fixture.app.deps.temporal.call>[1]>[0]
  >['workflow']['getHandle']
>;
const withHandle = <T>(
  workflowId: string,
  use: (handle: ApprovalHandle) => Promise<T>,
): Promise<T> =>
  fixture.app.deps.temporal.call(20_000, (client) => use(client.workflow.getHandle(workflowId)));
const withApproval = <T>(id: string, use: (handle: ApprovalHandle) => Promise<T>) =>
  withHandle(`approval:${id}`, use);

/** Sends a signal by hand. */
const signal = (id: string, name: ApprovalSignal, ...args: unknown[]) =>
  withApproval(id, (handle) => handle.signal(name, ...args));
const stateOf = (id: string) => fixture.app.deps.describeWorkflow(`approval:${id}`);
/** Waits until the workflow runs and nothing is to be dispatched to it: until then it is not repaired. */
const untilRunning = (id: string) =>
  eventually(
    async () => ({
      state: await stateOf(id),
      tasks: await fixture.app.deps.db('outbox').where({ workflow_id: `approval:${id}` }),
    }),
    ({ state, tasks }) => state.found && state.status === 'running' && tasks.length === 0,
  );
const untilClosed = (id: string) =>
  eventually(
    () => stateOf(id),
    (state) => state.found && state.status !== 'running',
  );
const untilJobRunning = (client: TestClient, jobId: string | null) =>
  eventually(
    () => client.get<JobRecord>(`/api/jobs/${String(jobId)}`).expect(200),
    ({ status }) => status === 'running',
  );
const boundJobs = (id: string) =>
  fixture.app.deps.db<{ source_kind: string; source_id: string; created_at: Date }>('jobs').where({
    source_kind: 'approval',
    source_id: id,
  });
const update = (id: string, values: object) =>
  fixture.app.deps.db('approvals').where({ id }).update(values);
const decisionIds = async (id: string, outcome: string) =>
  (
    await fixture.app.deps
      .db<{ id: string; approval_id: string; outcome: string }>('approval_decisions')
      .where({ approval_id: id, outcome })
  ).map((row) => row.id);

const minutesAgo = (minutes: number) => new Date(Date.now() - minutes * 60_000);

/** Runs the reconciler as if its time for this request had come. */
async function reconcile(id: string): Promise<void> {
  await eventually(
    () => fixture.app.deps.db('outbox').where({ workflow_id: `approval:${id}` }),
    (pending) => pending.length === 0,
  );
  await update(id, { check_at: new Date(0) });
  await fixture.app.deps.approvals.reconcile(AbortSignal.timeout(10_000));
}

/** The signals in the history of a workflow, each with its argument. */
const signalsOf = (id: string): Promise<string[]> =>
  withApproval(id, async (handle) => {
    const { events = [] } = await handle.fetchHistory();
    const signals = (events ?? []).flatMap(
      ({ workflowExecutionSignaledEventAttributes: attributes }) => {
        const [payload] = attributes?.input?.payloads ?? [];
        const argument = payload?.data ? Buffer.from(payload.data).toString('utf8') : '';
        return attributes ? [`${attributes.signalName ?? ''} ${argument}`] : [];
      },
    );
    // A signal is delivered at least once.
    return [...new Set(signals)];
  });

describe('signals', () => {
  test('each decision is signalled with the id of its record', async () => {
    const { requester, decider, other } = users();
    const approved = await createRequest(requester, { ...echoJob, requiredApprovals: 2 });
    const rejected = await createRequest(requester, echoJob);
    const cancelled = await createRequest(requester, echoJob);
    for (const { id } of [approved, rejected, cancelled]) await untilRunning(id);
    await approve(decider, approved.id).expect(200);
    await approve(other, approved.id).expect(200);
    await reject(decider, rejected.id).expect(200);
    await cancel(requester, cancelled.id).expect(200);
    for (const { id } of [approved, rejected, cancelled]) await untilClosed(id);
    const announced = async (id: string, name: ApprovalSignal, outcome: string) =>
      (await decisionIds(id, outcome)).map((decisionId) => `${name} "${decisionId}"`).sort();
    expect((await signalsOf(approved.id)).sort()).toEqual(
      await announced(approved.id, 'approve', 'approved'),
    );
    expect(await signalsOf(rejected.id)).toEqual(
      await announced(rejected.id, 'reject', 'rejected'),
    );
    expect(await signalsOf(cancelled.id)).toEqual(
      await announced(cancelled.id, 'cancel', 'cancelled'),
    );
    expect(await decisionIds(approved.id, 'approved')).toHaveLength(2);
  });

  test('a cancellation is not listed as a decision', async () => {
    const { requester, decider } = users();
    const executeAt = new Date(Date.now() + 3_600_000).toISOString();
    const created = await createRequest(requester, { ...echoJob, executeAt });
    await approve(decider, created.id).expect(200);
    const { decisions } = await cancel(decider, created.id).expect(200);
    expect(decisions).toMatchObject([{ actorId: 'decider', outcome: 'approved' }]);
    await untilClosed(created.id);
  });

  test('a signal sent by hand changes nothing', async () => {
    const { requester, decider } = users();
    const [created, another] = [
      await createRequest(requester, echoJob),
      await createRequest(requester, { ...echoJob, requiredApprovals: 2 }),
    ];
    await approve(decider, another.id).expect(200);
    const [ofAnother] = await decisionIds(another.id, 'approved');
    await untilRunning(created.id);
    const unknownId = fixture.app.deps.ids.next('dec');
    for (const name of ['approve', 'reject', 'cancel'] as const)
      for (const argument of [unknownId, ofAnother, 'nonsense', '\u0000', 7, null, undefined])
        await signal(created.id, name, argument);
    await signal(created.id, 'approve');
    await signal(created.id, 'nonsense' as ApprovalSignal, unknownId);
    // The workflow still waits, and still reacts to a decision that is committed.
    expect(await readRequest(requester, created.id)).toMatchObject({
      status: 'pending',
      version: 1,
    });
    await approve(decider, created.id).expect(200);
    await untilExecution(requester, created.id, 'succeeded');
    await untilClosed(created.id);
    expect(await boundJobs(created.id)).toHaveLength(1);
  });

  test('a repeated signal changes nothing', async () => {
    const { requester, decider } = users();
    const created = await createRequest(requester, echoJob);
    await untilRunning(created.id);
    await approve(decider, created.id).expect(200);
    const [decisionId] = await decisionIds(created.id, 'approved');
    await Promise.allSettled(
      Array.from({ length: 10 }, () => signal(created.id, 'approve', decisionId)),
    );
    await untilExecution(requester, created.id, 'succeeded');
    await untilClosed(created.id);
    expect(await boundJobs(created.id)).toHaveLength(1);
    expect(await eventTypesOf(fixture.app, created.id)).toEqual([
      'workflow.created',
      'workflow.decision.created',
      'workflow.approved',
      'workflow.executed',
    ]);
  });

  test('the reconciler repeats a signal that was lost', async () => {
    const { requester } = users();
    const created = await createRequest(requester, echoJob);
    await untilRunning(created.id);
    // Decided by a process that died, and the outbox task is lost.
    const decisionId = fixture.app.deps.ids.next('dec');
    await fixture.app.deps.db('approval_decisions').insert({
      id: decisionId,
      approval_id: created.id,
      actor_id: 'x',
      actor_names: '["x"]',
      outcome: 'approved',
      content_hash: created.contentHash,
      decided_at: new Date(),
    });
    await update(created.id, {
      status: 'approved',
      execution: 'queued',
      approval_count: 1,
      closed_at: minutesAgo(1),
      closed_by: 'x',
    });
    await reconcile(created.id);
    await untilExecution(requester, created.id, 'succeeded');
    expect(await auditActionsOf(fixture.app, created.id)).toContain('workflow.resend_signal');
    expect(await signalsOf(created.id)).toEqual([`approve "${decisionId}"`]);
  });
});

describe('a workflow that is missing or has ended', () => {
  test('a terminated workflow cancels its pending request, with the reason', async () => {
    const { requester, decider } = users();
    const created = await createRequest(requester, echoJob);
    await untilRunning(created.id);
    await withApproval(created.id, (handle) => handle.terminate('by hand'));
    await reconcile(created.id);
    expect(await readRequest(requester, created.id)).toMatchObject({
      status: 'cancelled',
      closedBy: 'system',
      closeComment: 'the workflow of the request has ended: terminated',
    });
    expect(await approve<ProblemBody>(decider, created.id).expect(409)).toMatchObject({
      code: 'approval_closed',
    });
  });

  test('a terminated workflow expires its request if the expiry has passed', async () => {
    const { requester } = users();
    const created = await createRequest(requester, echoJob);
    await untilRunning(created.id);
    await withApproval(created.id, (handle) => handle.terminate('by hand'));
    await update(created.id, { expires_at: new Date(Date.now() - 1_000) });
    await reconcile(created.id);
    expect(await readRequest(requester, created.id)).toMatchObject({
      status: 'expired',
      closedBy: 'system',
    });
  });

  test('the reconciler expires an overdue request whose workflow still waits', async () => {
    const { requester } = users();
    const created = await createRequest(requester, echoJob);
    await untilRunning(created.id);
    await update(created.id, { expires_at: minutesAgo(1) });
    await reconcile(created.id);
    expect(await readRequest(requester, created.id)).toMatchObject({ status: 'expired' });
  });

  test.each([
    ['whose workflow has ended', (id: string) => reconcile(id)],
    [
      'whose workflow asks again',
      (id: string) => fixture.app.deps.approvals.execution.loadState(id),
    ],
  ])('a request %s ends with the job that ended without it', async (_title, act) => {
    const { requester, decider } = users();
    const { id } = await createRequest(requester, echoJob);
    await approve(decider, id).expect(200);
    const { jobId } = await untilExecution(requester, id, 'succeeded');
    await untilClosed(id);
    await update(id, { execution: 'running', executed_at: null });
    await act(id);
    expect(await readRequest(requester, id)).toMatchObject({ execution: 'succeeded', jobId });
    await update(id, {
      execution: 'running',
      executed_at: null,
      job_id: fixture.app.deps.ids.next('job'),
    });
    await act(id);
    expect(await readRequest(requester, id)).toMatchObject({
      execution: 'failed',
      error: { code: 'outcome_unknown' },
    });
  });

  test('a workflow that Temporal does not know is started again', async () => {
    const { requester, decider } = users();
    const created = await createRequest(requester, echoJob);
    await untilRunning(created.id);
    // A copy of the request, which Temporal does not know.
    const { db, ids } = fixture.app.deps;
    const [row] = await db<Record<string, unknown>>('approvals').where({ id: created.id });
    const lost = ids.next('apr');
    const json = ['payload', 'job_payload', 'authority', 'requester_names'].map((column) => [
      column,
      JSON.stringify(row?.[column]),
    ]);
    await db('approvals').insert({ ...row, ...Object.fromEntries(json), id: lost });
    await db('approval_assignees').insert({
      approval_id: lost,
      kind: 'role',
      assignee_id: 'approver',
    });
    await reconcile(lost);
    await untilRunning(lost);
    await approve(decider, lost).expect(200);
    await untilExecution(requester, lost, 'succeeded');
    expect(await auditActionsOf(fixture.app, lost)).toContain('workflow.redispatch');
  });

  test('if Temporal does not have the newest pending request, all are checked now', async () => {
    const { requester } = users();
    const { deps } = fixture.app;
    const created = [await createRequest(requester), await createRequest(requester)];
    for (const { id } of created) {
      await untilRunning(id);
      await update(id, { check_at: minutesAgo(-60) });
      await deps.temporal.call(20_000, ({ workflowService }) =>
        workflowService.deleteWorkflowExecution({
          namespace: 'default',
          workflowExecution: { workflowId: `approval:${id}` },
        }),
      );
      await eventually(
        async () => [await stateOf(id), await auditActionsOf(fixture.app, id)] as const,
        ([{ found }, actions]) => !found || actions.includes('workflow.redispatch'),
      );
    }
    for (const { id } of created) {
      await untilRunning(id);
      expect(await auditActionsOf(fixture.app, id)).toContain('workflow.redispatch');
    }
  });

  test('cancelling the workflow in Temporal cancels the request, or its running job', async () => {
    const { requester, decider } = users();
    const created = await createRequest(requester, echoJob);
    await untilRunning(created.id);
    await withApproval(created.id, (handle) => handle.cancel());
    expect(await untilStatus(requester, created.id, 'cancelled')).toMatchObject({
      closedBy: 'system',
      closeComment: 'the workflow was cancelled in Temporal',
    });
    const slow = await createRequest(requester, sleepJob(60_000));
    await approve(decider, slow.id).expect(200);
    const { jobId } = await untilExecution(requester, slow.id, 'running');
    await untilJobRunning(requester, jobId);
    await withApproval(slow.id, (handle) => handle.cancel());
    expect(await untilExecution(requester, slow.id, 'failed')).toMatchObject({
      status: 'approved',
      error: { code: 'job_cancelled' },
    });
  });

  test('cancelling the workflow in Temporal cancels a job that another run has started', async () => {
    const { requester, decider } = users();
    const created = await createRequest(requester, sleepJob(60_000));
    await approve(decider, created.id).expect(200);
    const { jobId } = await untilExecution(requester, created.id, 'running');
    await untilJobRunning(requester, jobId);
    // The same process under another workflow id: it finds the run of the job.
    const workflowId = `approval-second:${created.id}`;
    const { temporal, config } = fixture.app.deps;
    const args = [{ approvalId: created.id, heartbeatMs: 10_000 }];
    await temporal.call(20_000, (client) =>
      client.workflow.start('approval', { workflowId, taskQueue: config.taskQueue, args }),
    );
    await eventually(
      () => withHandle(workflowId, (handle) => handle.fetchHistory()),
      ({ events }) => (events ?? []).some((event) => event.timerStartedEventAttributes),
    );
    await withHandle(workflowId, (handle) => handle.cancel());
    expect(await untilExecution(requester, created.id, 'failed')).toMatchObject({
      error: { code: 'job_cancelled' },
    });
  });

  test('cancelling the workflow in Temporal cancels a job that it has not started', async () => {
    const { requester, decider } = users();
    const created = await createRequest(requester, sleepJob(60_000));
    await untilRunning(created.id);
    await withApproval(created.id, (handle) => handle.terminate('by hand'));
    await approve(decider, created.id).expect(200);
    const { execution } = fixture.app.deps.approvals;
    await execution.createBoundJob(created.id);
    const { jobId } = await untilExecution(requester, created.id, 'running');
    for (let times = 0; times < 2; times++) await execution.cancelWithJob(created.id, 'by hand');
    expect(await readRequest(requester, created.id)).toMatchObject({
      status: 'approved',
      execution: 'failed',
      error: { code: 'job_cancelled' },
    });
    expect(await fixture.app.deps.describeWorkflow(`job:${jobId}`)).toEqual({ found: false });
  });

  test('a running job goes on without the workflow, and finishes the request', async () => {
    const { requester, decider } = users();
    const created = await createRequest(requester, sleepJob(1_500));
    await approve(decider, created.id).expect(200);
    const { jobId } = await untilExecution(requester, created.id, 'running');
    await untilJobRunning(requester, jobId);
    await withApproval(created.id, (handle) => handle.terminate('by hand'));
    await untilExecution(requester, created.id, 'succeeded');
  });
});

describe('a long history', () => {
  test('the workflow continues as a new run and keeps waiting for the decision', async () => {
    const { requester, decider } = users();
    const created = await createRequest(requester, echoJob);
    await untilRunning(created.id);
    // The same process under another workflow id, with a low limit.
    const workflowId = `approval-limit:${created.id}`;
    const { temporal, config } = fixture.app.deps;
    const first = await temporal.call(20_000, (client) =>
      client.workflow.start('approval', {
        workflowId,
        taskQueue: config.taskQueue,
        args: [{ approvalId: created.id, heartbeatMs: 10_000, maxHistoryEvents: 20 }],
      }),
    );
    const runIdOf = () => withHandle(workflowId, async (handle) => (await handle.describe()).runId);
    await eventually(
      async () => {
        await withHandle(workflowId, (handle) => handle.signal('approve', 'nonsense'));
        return runIdOf();
      },
      (runId) => runId !== first.firstExecutionRunId,
    );
    const unknownId = fixture.app.deps.ids.next('dec');
    await withHandle(workflowId, (handle) => handle.signal('cancel', unknownId));
    expect(await readRequest(requester, created.id)).toMatchObject({ status: 'pending' });
    await approve(decider, created.id).expect(200);
    const [decisionId] = await decisionIds(created.id, 'approved');
    await withHandle(workflowId, (handle) => handle.signal('approve', decisionId));
    // If the other workflow has started the job, this one checks it after 15 s.
    const result = await temporal.call(45_000, (client) =>
      client.workflow.getHandle(workflowId).result(),
    );
    expect(result).toEqual({ status: 'approved', execution: 'succeeded' });
    expect(await boundJobs(created.id)).toHaveLength(1);
  });
});

describe('summaries', () => {
  test('timers, activities and child workflows say what they are for', async () => {
    const { requester, decider } = users();
    const created = await createRequest(requester, echoJob);
    await eventually(
      () => textOf(`approval:${created.id}`).catch(() => ''),
      (text) => text.includes('Until the next reminder'),
    );
    await approve(decider, created.id).expect(200);
    await untilExecution(requester, created.id, 'succeeded');
    await untilClosed(created.id);
    const text = await textOf(`approval:${created.id}`);
    expect(text).toContain('Check the request again and create its job');
    expect(text).toContain('core.echo');
  });
});

describe('times', () => {
  test('a request that is approved now is executed at executeAt, and not before', async () => {
    const { requester, decider } = users();
    const executeAt = new Date(Date.now() + 3_000);
    const created = await createRequest(requester, {
      ...echoJob,
      executeAt: executeAt.toISOString(),
    });
    expect(await approve(decider, created.id).expect(200)).toMatchObject({
      status: 'approved',
      execution: 'queued',
      ifApproved: `Approved. The job starts at ${executeAt.toISOString()}.`,
    });
    const finished = await untilExecution(requester, created.id, 'succeeded');
    const [job] = await boundJobs(created.id);
    expect(job?.created_at.getTime()).toBeGreaterThanOrEqual(executeAt.getTime());
    expect(String(finished.executedAt) >= executeAt.toISOString()).toBe(true);
  });

  test('an approved request that is cancelled before executeAt is not executed', async () => {
    const { requester, decider } = users();
    const created = await createRequest(requester, {
      ...createPrefix('10.1.0.0/16'),
      executeAt: new Date(Date.now() + 2_000).toISOString(),
    });
    await approve(decider, created.id).expect(200);
    await cancel(requester, created.id).expect(200);
    await untilClosed(created.id);
    expect(await boundJobs(created.id)).toEqual([]);
    expect(await readRequest(requester, created.id)).toMatchObject({
      status: 'cancelled',
      execution: 'none',
    });
  });

  test('each reminder is sent once, and missed reminders are sent as one', async () => {
    const { requester, decider } = users();
    const { execution } = fixture.app.deps.approvals;
    const created = await createRequest(requester, { ...echoJob, requiredApprovals: 2 });
    await untilRunning(created.id);
    await approve(decider, created.id).expect(200);
    const [decisionId] = await decisionIds(created.id, 'approved');
    const ageBy = (days: number) =>
      update(created.id, {
        created_at: new Date(Date.now() - days * 86_400_000),
        expires_at: new Date(Date.now() + (14 - days) * 86_400_000),
      });
    // A signal that names a committed decision makes the workflow read its record again.
    const wake = () => signal(created.id, 'approve', decisionId);
    const untilReminders = (count: number) =>
      eventually(
        () => eventTypesOf(fixture.app, created.id),
        (types) => types.filter((type) => type === 'workflow.reminder').length === count,
      );
    await execution.sendReminder(created.id);
    await ageBy(8);
    for (let i = 0; i < 3; i++) await wake();
    await untilReminders(1);
    await execution.sendReminder(created.id);
    await ageBy(13.5);
    await wake();
    await untilReminders(2);
    await ageBy(14.1);
    await wake();
    await untilStatus(requester, created.id, 'expired');
    expect(await eventTypesOf(fixture.app, created.id)).toEqual([
      'workflow.created',
      'workflow.decision.created',
      'workflow.reminder',
      'workflow.reminder',
      'workflow.expired',
    ]);
    // A reminder does not change the version: the first approval and the expiry do.
    expect(await readRequest(requester, created.id)).toMatchObject({ version: 3 });
  });
});

test('the content of a request does not reach Temporal', async () => {
  const { requester, decider } = users();
  const secret = 'hunter2-in-a-header';
  const created = await createRequest(requester, {
    title: 'words of a title',
    payload: { secret },
    jobType: 'http.request',
    jobPayload: { url: 'http://127.0.0.1:1/', headers: { authorization: secret } },
  });
  expect(JSON.stringify(created)).not.toContain(`"authorization":"${secret}"`);
  await approve(decider, created.id, { comment: 'words of a comment' }).expect(200);
  const jobId = String((await untilExecution(requester, created.id, 'running')).jobId);
  await eventually(
    () => requester.get<JobRecord>(`/api/jobs/${jobId}`).expect(200),
    ({ attempts }) => attempts > 0,
  );
  await requester.post(`/api/jobs/${jobId}/cancel`);
  await untilExecution(requester, created.id, 'failed');
  await untilClosed(created.id);
  const texts = (
    await Promise.all([textOf(`approval:${created.id}`), textOf(`job:${jobId}`)])
  ).join();
  // Words that must be in the histories are found, so the search works.
  for (const present of [created.id, jobId, 'approval of http.request'])
    expect(texts).toContain(present);
  expect(texts).not.toContain('hunter2');
  expect(texts).not.toContain('words of');
  const { db } = fixture.app.deps;
  const entries = [
    ...(await db<object>('audit_entries').whereIn('subject_id', [jobId, created.id])),
    ...(await db<object>('events').where({ subject_id: jobId })),
  ];
  expect(entries.length).toBeGreaterThan(4);
  expect(JSON.stringify(entries)).not.toContain('hunter2');
});

/** Everything that Temporal stores about a workflow run, with payloads decoded. */
async function textOf(workflowId: string): Promise<string> {
  const history = await withHandle(workflowId, (handle) => handle.fetchHistory());
  const texts: string[] = [];
  const walk = (value: unknown): void => {
    if (value instanceof Uint8Array) texts.push(Buffer.from(value).toString('utf8'));
    else if (typeof value === 'string') texts.push(value);
    else if (typeof value === 'object' && value !== null) Object.values(value).forEach(walk);
  };
  walk(history.events);
  return texts.join('\n');
}
