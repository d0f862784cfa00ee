import { expect, test } from '@jest/globals';
import {
  approve,
  auditActionsOf,
  createRequest,
  echoJob,
  readRequest,
  sleepJob,
  untilExecution,
  withApprovals,
} from '../../support/approvals.ts';
import { eventually } from '../../support/eventually.ts';

const { fixture, users } = withApprovals();

const stateOf = (id: string) => fixture.app.deps.describeWorkflow(`approval:${id}`);
const untilState = (id: string, status: string) =>
  eventually(
    () => stateOf(id),
    (state) => state.found && state.status === status,
  );
const untilDispatched = (id: string) =>
  eventually(
    () => fixture.app.deps.db('outbox').where({ workflow_id: `approval:${id}` }),
    ({ length }) => length === 0,
  );
const boundJobs = (id: string) =>
  fixture.app.deps.db('jobs').where({ source_kind: 'approval', source_id: id });
const restartsOf = async (id: string): Promise<number> =>
  (await auditActionsOf(fixture.app, id)).filter((action) => action === 'workflow.redispatch')
    .length;

/** Ends the workflow of a request as a bug would: the last run of its id has failed. */
async function failWorkflow(id: string): Promise<void> {
  const { temporal, config } = fixture.app.deps;
  await untilState(id, 'running');
  await untilDispatched(id);
  await temporal.call(20_000, async ({ workflow }) => {
    await workflow.getHandle(`approval:${id}`).terminate('by the test');
    // This one fails when no Temporal Schedule has started it.
    await workflow.start('fireSchedule', {
      workflowId: `approval:${id}`,
      taskQueue: config.taskQueue,
      args: [{ scheduleId: 'none' }],
      workflowIdReusePolicy: 'ALLOW_DUPLICATE',
    });
  });
  await untilState(id, 'failed');
}

async function reconcile(id: string): Promise<void> {
  await untilDispatched(id);
  await fixture.app.deps
    .db('approvals')
    .where({ id })
    .update({ check_at: new Date(0) });
  await fixture.app.deps.approvals.reconcile(AbortSignal.timeout(10_000));
}

test('a request whose workflow has failed waits for its decision again', async () => {
  const { requester, decider } = users();
  const { id } = await createRequest(requester, echoJob);
  await failWorkflow(id);
  await reconcile(id);
  await untilState(id, 'running');
  expect(await readRequest(requester, id)).toMatchObject({ status: 'pending', version: 1 });
  await approve(decider, id).expect(200);
  await untilExecution(requester, id, 'succeeded');
  expect([(await boundJobs(id)).length, await restartsOf(id)]).toEqual([1, 1]);
});

test('a decision that a failed workflow has missed is executed once', async () => {
  const { requester, decider } = users();
  const { id } = await createRequest(requester, echoJob);
  await failWorkflow(id);
  await approve(decider, id).expect(200);
  await reconcile(id);
  await untilExecution(requester, id, 'succeeded');
  await untilState(id, 'completed');
  await reconcile(id);
  expect([(await boundJobs(id)).length, await restartsOf(id)]).toEqual([1, 1]);
});

test('a workflow that has failed while its job runs is not started again', async () => {
  const { requester, decider } = users();
  const { id } = await createRequest(requester, sleepJob(3_000));
  await approve(decider, id).expect(200);
  await eventually(
    () => boundJobs(id),
    ([job]) => job?.status === 'running',
  );
  await failWorkflow(id);
  await reconcile(id);
  await untilExecution(requester, id, 'succeeded');
  expect([(await boundJobs(id)).length, await restartsOf(id)]).toEqual([1, 0]);
});

test('a workflow that fails again and again ends with its request, which is cancelled', async () => {
  const { requester } = users();
  const { id } = await createRequest(requester, echoJob);
  for (const restarts of [4, 5]) {
    await fixture.app.deps.db('approvals').where({ id }).update({ restarts });
    await failWorkflow(id);
    await reconcile(id);
  }
  expect(await readRequest(requester, id)).toMatchObject({
    status: 'cancelled',
    closeComment: 'the workflow of the request has ended: failed',
  });
  expect(await restartsOf(id)).toBe(1);
});
