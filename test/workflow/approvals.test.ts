import { describe, expect, test } from '@jest/globals';
import {
  approve,
  cancel,
  echo,
  eventsOf,
  prefix,
  read,
  request,
  trailOf,
  untilExecution,
  untilStatus,
  withApprovals,
} from '../support/approvals.ts';
import { eventually } from '../support/eventually.ts';

const { bed, people } = withApprovals({ HOLDFAST_RECONCILE_SECONDS: '2' });

type Handle = ReturnType<
  Awaited<Parameters<Parameters<typeof bed.app.deps.link.call>[1]>[0]>['workflow']['getHandle']
>;
const run = <T>(id: string, use: (handle: Handle) => Promise<T>): Promise<T> =>
  bed.app.deps.link.call(5_000, (client) => use(client.workflow.getHandle(`approval:${id}`)));
const signal = (id: string) => run(id, (handle) => handle.signal('approvalChanged'));
const stateOf = (id: string) => bed.app.deps.inspect(`approval:${id}`);
const untilRunning = (id: string) =>
  eventually(
    () => stateOf(id),
    (state) => state.found && state.status === 'running',
  );
const untilClosed = (id: string) =>
  eventually(
    () => stateOf(id),
    (state) => state.found && state.status !== 'running',
  );
const jobsOf = (id: string) =>
  bed.app.deps.db('jobs').where({ source_kind: 'approval', source_id: id });

/** As if the reconciler's time for it had come. */
async function reconcile(id: string): Promise<void> {
  await eventually(
    () => bed.app.deps.db('outbox').where({ workflow_id: `approval:${id}` }),
    (owed) => owed.length === 0,
  );
  await bed.app.deps
    .db('approvals')
    .where({ id })
    .update({ check_at: new Date(0) });
  await bed.app.deps.approvals.reconcile(AbortSignal.timeout(10_000));
}

describe('signals', () => {
  test('without a decision, and doubled, they change nothing', async () => {
    const { asker, decider } = people();
    const made = await request(asker, echo);
    await untilRunning(made.id);
    for (let i = 0; i < 10; i++) await signal(made.id);
    expect(await read(asker, made.id)).toMatchObject({ status: 'pending', version: 1 });
    await approve(decider, made.id);
    await Promise.allSettled(Array.from({ length: 10 }, () => signal(made.id)));
    await untilExecution(asker, made.id, 'succeeded');
    await untilClosed(made.id);
    expect(await jobsOf(made.id)).toHaveLength(1);
    expect(await eventsOf(bed.app, made.id)).toEqual([
      'workflow.created',
      'workflow.decision.created',
      'workflow.approved',
      'workflow.executed',
    ]);
  });
  test('one that is lost is found out by the reconciler', async () => {
    const { asker } = people();
    const made = await request(asker, echo);
    await untilRunning(made.id);
    const { db } = bed.app.deps;
    const [decision] = await db('approvals').where({ id: made.id });
    // Decided by a process that died, with its outbox lost.
    await db('approval_decisions').insert({
      approval_id: made.id,
      actor_id: 'x',
      actor_names: '["x"]',
      outcome: 'approved',
      content_hash: decision.content_hash,
      decided_at: new Date(),
    });
    await db('approvals')
      .where({ id: made.id })
      .update({
        status: 'approved',
        execution: 'queued',
        approval_count: 1,
        closed_at: new Date(Date.now() - 60_000),
        closed_by: 'x',
      });
    await reconcile(made.id);
    await untilExecution(asker, made.id, 'succeeded');
    expect(await trailOf(bed.app, made.id)).toContain('workflow.wake');
  });
});

describe('runs that are gone', () => {
  test('one that was terminated while nobody had decided closes the request, with a reason', async () => {
    const { asker, decider } = people();
    const made = await request(asker, echo);
    await untilRunning(made.id);
    await run(made.id, (handle) => handle.terminate('by hand'));
    await reconcile(made.id);
    expect(await read(asker, made.id)).toMatchObject({
      status: 'cancelled',
      closedBy: 'system',
      closeComment: 'the run that waited for the decision has ended: terminated',
    });
    expect((await approve(decider, made.id)).body).toMatchObject({ code: 'approval_closed' });
  });
  test('terminated, and past its expiry when that is noticed: it has expired', async () => {
    const { asker } = people();
    const made = await request(asker, echo);
    await untilRunning(made.id);
    await run(made.id, (handle) => handle.terminate('by hand'));
    await bed.app.deps
      .db('approvals')
      .where({ id: made.id })
      .update({ expires_at: new Date(Date.now() - 1_000) });
    await reconcile(made.id);
    expect(await read(asker, made.id)).toMatchObject({ status: 'expired', closedBy: 'system' });
  });
  test('one that was never started, or is lost with Temporal, is started again', async () => {
    const { asker, decider } = people();
    const made = await request(asker, echo);
    await untilRunning(made.id);
    // A request that Temporal knows nothing of.
    const { db, ids } = bed.app.deps;
    const [row] = await db('approvals').where({ id: made.id });
    const lost = ids.next('apr');
    const json = (value: unknown) => JSON.stringify(value);
    await db('approvals').insert({
      ...row,
      id: lost,
      payload: json(row.payload),
      job_payload: json(row.job_payload),
      authority: json(row.authority),
      requester_names: json(row.requester_names),
    });
    await db('approval_assignees').insert({
      approval_id: lost,
      kind: 'role',
      assignee_id: 'approver',
    });
    await reconcile(lost);
    await untilRunning(lost);
    await approve(decider, lost);
    await untilExecution(asker, lost, 'succeeded');
    expect(await trailOf(bed.app, lost)).toContain('workflow.redispatch');
  });
  test('cancelled in Temporal: the request is, too; with a job that runs, the job', async () => {
    const { asker, decider } = people();
    const made = await request(asker, echo);
    await untilRunning(made.id);
    await run(made.id, (handle) => handle.cancel());
    expect(await untilStatus(asker, made.id, 'cancelled')).toMatchObject({
      closedBy: 'system',
      closeComment: 'the run was cancelled in Temporal',
    });
    const slow = await request(asker, {
      jobType: 'core.sleep',
      jobPayload: { durationMs: 60_000 },
    });
    await approve(decider, slow.id);
    const { jobId } = await untilExecution(asker, slow.id, 'running');
    await eventually(
      () => asker.get(`/api/jobs/${jobId as string}`),
      ({ body }) => body.status === 'running',
    );
    await run(slow.id, (handle) => handle.cancel());
    expect(await untilExecution(asker, slow.id, 'failed')).toMatchObject({
      status: 'approved',
      error: { code: 'job_cancelled' },
    });
  });
  test('terminated while its job runs: the job goes on, and is the end of the request', async () => {
    const { asker, decider } = people();
    const made = await request(asker, { jobType: 'core.sleep', jobPayload: { durationMs: 1_500 } });
    await approve(decider, made.id);
    const { jobId } = await untilExecution(asker, made.id, 'running');
    await eventually(
      () => asker.get(`/api/jobs/${jobId as string}`),
      ({ body }) => body.status === 'running',
    );
    await run(made.id, (handle) => handle.terminate('by hand'));
    await untilExecution(asker, made.id, 'succeeded');
  });
});

describe('times', () => {
  test('approved now, carried out later, and not before', async () => {
    const { asker, decider } = people();
    const executeAt = new Date(Date.now() + 3_000);
    const made = await request(asker, { ...echo, executeAt: executeAt.toISOString() });
    expect((await approve(decider, made.id)).body).toMatchObject({
      status: 'approved',
      execution: 'queued',
      ifApproved: `It is approved, and begins at ${executeAt.toISOString()}.`,
    });
    const done = await untilExecution(asker, made.id, 'succeeded');
    const [job] = await jobsOf(made.id);
    expect(job.created_at.getTime()).toBeGreaterThanOrEqual(executeAt.getTime());
    expect(done.executedAt >= executeAt.toISOString()).toBe(true);
  });
  test('a later execution that was stopped does not come', async () => {
    const { asker, decider } = people();
    const made = await request(asker, {
      ...prefix('10.1.0.0/16'),
      executeAt: new Date(Date.now() + 2_000).toISOString(),
    });
    await approve(decider, made.id);
    await cancel(asker, made.id);
    await untilClosed(made.id);
    expect(await jobsOf(made.id)).toEqual([]);
    expect(await read(asker, made.id)).toMatchObject({ status: 'cancelled', execution: 'none' });
  });
  test('reminders come once each, and those that were missed as one', async () => {
    const { asker } = people();
    const {
      db,
      approvals: { runs },
    } = bed.app.deps;
    const made = await request(asker, echo);
    await untilRunning(made.id);
    const age = (days: number) =>
      db('approvals')
        .where({ id: made.id })
        .update({
          created_at: new Date(Date.now() - days * 86_400_000),
          expires_at: new Date(Date.now() + (14 - days) * 86_400_000),
        });
    await runs.remind(made.id);
    await age(8);
    for (let i = 0; i < 3; i++) await signal(made.id);
    await eventually(
      () => eventsOf(bed.app, made.id),
      (types) => types.includes('workflow.reminder'),
    );
    await runs.remind(made.id);
    await age(13.5);
    await signal(made.id);
    await eventually(
      () => eventsOf(bed.app, made.id),
      (types) => types.filter((type) => type === 'workflow.reminder').length === 2,
    );
    await age(14.1);
    await signal(made.id);
    await untilStatus(asker, made.id, 'expired');
    expect(await eventsOf(bed.app, made.id)).toEqual([
      'workflow.created',
      'workflow.reminder',
      'workflow.reminder',
      'workflow.expired',
    ]);
    // A reminder is no other request: only its end was a new version.
    expect(await read(asker, made.id)).toMatchObject({ version: 2 });
  });
});

test('nothing of what was asked reaches Temporal', async () => {
  const { asker, decider } = people();
  const secret = 'hunter2-in-a-header';
  const made = await request(asker, {
    title: 'words of a title',
    payload: { secret },
    jobType: 'http.request',
    jobPayload: { url: 'http://127.0.0.1:1/', headers: { authorization: secret } },
  });
  expect(JSON.stringify(made)).not.toContain(`"authorization":"${secret}"`);
  await approve(decider, made.id, { comment: 'words of a comment' });
  const { jobId } = await untilExecution(asker, made.id, 'running');
  await asker.post(`/api/jobs/${jobId as string}/cancel`);
  await untilExecution(asker, made.id, 'failed');
  await untilClosed(made.id);
  const texts = (
    await Promise.all([textOf(`approval:${made.id as string}`), textOf(`job:${jobId as string}`)])
  ).join();
  // What is known to be there is found, so what is not found is not there.
  expect([
    texts.includes(made.id),
    texts.includes(jobId),
    texts.includes('approval of http.request'),
  ]).toEqual([true, true, true]);
  expect(texts).not.toContain('hunter2');
  expect(texts).not.toContain('words of');
  const { db } = bed.app.deps;
  const entries = [
    ...(await db('audit_entries').whereIn('subject_id', [jobId, made.id])),
    ...(await db('events').where({ subject_id: jobId })),
  ];
  expect(entries.length).toBeGreaterThan(4);
  expect(JSON.stringify(entries)).not.toContain('hunter2');
});

/** Everything that Temporal keeps of a run, its payloads decoded. */
async function textOf(workflowId: string): Promise<string> {
  const history = await bed.app.deps.link.call(5_000, (client) =>
    client.workflow.getHandle(workflowId).fetchHistory(),
  );
  const texts: string[] = [];
  const walk = (value: unknown): void => {
    if (value instanceof Uint8Array) texts.push(Buffer.from(value).toString('utf8'));
    else if (typeof value === 'string') texts.push(value);
    else if (typeof value === 'object' && value !== null) Object.values(value).forEach(walk);
  };
  walk(history.events);
  return texts.join('\n');
}
