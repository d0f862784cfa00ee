import { expect, test } from '@jest/globals';
import type { JobRecord } from '../../../api/jobs/schemas.ts';
import { jobWorkflowId } from '../../../domain/dispatch/workflowIds.ts';
import { approveAndWait, createRequest, echoJob, withApprovals } from '../../support/approvals.ts';
import { eventually } from '../../support/eventually.ts';

const HEARTBEAT_MS = 4_000;

const { fixture, users } = withApprovals({
  HOLDFAST_HEARTBEAT_MS: String(HEARTBEAT_MS),
  HOLDFAST_MAX_ACTIVITY_RUNS: '1',
});

const read = (id: string) => fixture.app.client.get<JobRecord>(`/api/jobs/${id}`).expect(200);

/** Starts a job that keeps the only slot of the worker while it runs. */
async function occupySlot(durationMs = 60_000): Promise<string> {
  const { client } = fixture.app;
  const body = { type: 'core.sleep', payload: { durationMs } };
  const { id } = await client.post<JobRecord>('/api/jobs', body).expect(201);
  await eventually(
    () => read(id),
    ({ status }) => status === 'running',
  );
  return id;
}

const cancel = async (id: string) =>
  fixture.app.client.post(`/api/jobs/${id}/cancel`, {}, { prefer: 'wait=20' }).expect(202);

/** When Temporal has got the last heartbeat of a job's attempt, in milliseconds. */
async function lastHeartbeat(id: string): Promise<number> {
  const { raw } = await fixture.app.deps.temporal.call(20_000, ({ workflow }) =>
    workflow.getHandle(jobWorkflowId(id)).describe(),
  );
  const { seconds, nanos } = raw.pendingActivities?.[0]?.lastHeartbeatTime ?? {};
  return Number(seconds ?? 0) * 1_000 + (nanos ?? 0) / 1e6;
}

test('an attempt sends several heartbeats within the time after which it is taken for lost', async () => {
  const id = await occupySlot();
  const first = await eventually(
    () => lastHeartbeat(id),
    (at) => at > 0,
  );
  const second = await eventually(
    () => lastHeartbeat(id),
    (at) => at > first,
  );
  expect(second - first).toBeLessThan(HEARTBEAT_MS / 2);
  await cancel(id);
});

test('a worker whose slots are all held by jobs still executes an approved request', async () => {
  const id = await occupySlot();
  const { requester, decider } = users();
  const request = await createRequest(requester, echoJob);
  expect(await approveAndWait(decider, request.id)).toMatchObject({ execution: 'succeeded' });
  await cancel(id);
});

test('an attempt whose activity is paused in Temporal is not counted, and repeated afterwards', async () => {
  const { client, deps } = fixture.app;
  const id = await occupySlot(5_000);
  const { workflowService } = await deps.temporal.nativeConnection();
  const activity = {
    namespace: deps.temporal.namespace,
    execution: { workflowId: jobWorkflowId(id) },
    ...{ type: 'runJobAttempt', identity: 'a test' },
  };
  await workflowService.pauseActivity(activity);
  const paused = await eventually(
    () => read(id),
    ({ interruptions }) => interruptions === 1,
  );
  expect(paused.logs.at(-1)?.message).toBe(
    'Attempt 1 was interrupted: its activity was paused in Temporal',
  );
  await workflowService.unpauseActivity(activity);
  const ended = await client.get<JobRecord>(`/api/jobs/${id}`, { prefer: 'wait=30' }).expect(200);
  expect(ended).toMatchObject({ status: 'succeeded', attempts: 2, interruptions: 1 });
});
