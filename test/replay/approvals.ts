import type { WorkflowHandle } from '@temporalio/client';
import {
  approve,
  cancel,
  echoJob,
  createPrefix,
  reject,
  createRequest,
  untilExecution,
} from '../support/approvals.ts';
import type { TestApp } from '../support/app.ts';
import type { TestClient } from '../support/client.ts';
import { eventually } from '../support/eventually.ts';

/** One branch of the approval workflow: the request, and what happens then. */
type Branch = {
  name: string;
  requestBody(): object;
  act(people: Participants, id: string, handle: WorkflowHandle): Promise<unknown>;
};
type Participants = { app: TestApp; requester: TestClient; decider: TestClient; other: TestClient };

const isoIn = (ms: number) => new Date(Date.now() + ms).toISOString();
const untilJobRunning = async ({ app, requester }: Participants, id: string) => {
  const { jobId } = await untilExecution(requester, id, 'running');
  await eventually(
    () => app.deps.db('jobs').where({ id: jobId }).first(),
    (job) => job.status === 'running',
  );
  return jobId as string;
};

const branches: readonly Branch[] = [
  { name: 'approve', requestBody: () => echoJob, act: ({ decider }, id) => approve(decider, id) },
  {
    name: 'approve-nothing',
    requestBody: () => ({}),
    act: ({ decider }, id) => approve(decider, id),
  },
  {
    name: 'approve-change',
    requestBody: () =>
      createPrefix(`10.${Math.floor(Math.random() * 256)}.${Math.floor(Math.random() * 256)}.0/24`),
    act: ({ decider }, id) => approve(decider, id),
  },
  { name: 'reject', requestBody: () => echoJob, act: ({ decider }, id) => reject(decider, id) },
  // Sends the reminders in the meantime.
  {
    name: 'expire',
    requestBody: () => ({ ...echoJob, expiresAt: isoIn(8_000) }),
    act: () => Promise.resolve(),
  },
  { name: 'cancel', requestBody: () => echoJob, act: ({ requester }, id) => cancel(requester, id) },
  {
    name: 'stale',
    requestBody: () => createPrefix('10.250.0.0/16'),
    act: async ({ app, decider }, id) => {
      await app.client
        .as({ actor: 'root', roles: 'platform-admin' })
        .post('/api/inventory/prefixes', { cidr: '10.250.0.0/16' });
      await approve(decider, id);
    },
  },
  {
    name: 'two-approvals',
    requestBody: () => ({ ...echoJob, requiredApprovals: 2 }),
    act: async ({ decider, other }, id, handle) => {
      await approve(decider, id);
      await handle.signal('approve', 'dec_unknown');
      await approve(other, id);
    },
  },
  {
    name: 'later',
    requestBody: () => ({ ...echoJob, executeAt: isoIn(2_000) }),
    act: ({ decider }, id) => approve(decider, id),
  },
  {
    name: 'cancel-later',
    requestBody: () => ({ ...echoJob, executeAt: isoIn(60_000) }),
    act: async ({ requester, decider }, id, handle) => {
      await approve(decider, id);
      await eventually(
        () => handle.describe(),
        ({ historyLength }) => historyLength > 8,
      );
      await cancel(requester, id);
    },
  },
  {
    name: 'job-cancelled',
    requestBody: () => ({ jobType: 'core.sleep', jobPayload: { durationMs: 60_000 } }),
    act: async (people, id) => {
      await approve(people.decider, id);
      await people.requester.post(`/api/jobs/${await untilJobRunning(people, id)}/cancel`);
    },
  },
  {
    name: 'job-failed',
    requestBody: () => ({
      jobType: 'core.sleep',
      jobPayload: { durationMs: 1, failAttempts: 100 },
    }),
    act: ({ decider }, id) => approve(decider, id),
  },
  {
    name: 'followed',
    requestBody: () => ({
      jobType: 'core.sleep',
      jobPayload: { durationMs: 4_000 },
      executeAt: isoIn(2_500),
    }),
    act: async ({ app, decider }, id) => {
      await approve(decider, id);
      await eventually(
        () =>
          app.deps.approvals.execution
            .createBoundJob(id)
            .then(() => app.deps.db('jobs').where({ source_id: id })),
        (jobs) => jobs.length === 1,
      );
      await app.deps
        .db('jobs')
        .where({ source_id: id })
        .update({ checked_at: new Date(0) });
      await app.deps.reconcile.reconcileJobs(AbortSignal.timeout(10_000));
    },
  },
  {
    name: 'cancelled-in-temporal',
    requestBody: () => echoJob,
    act: (_people, _id, handle) => handle.cancel(),
  },
  {
    name: 'cancelled-in-temporal-running',
    requestBody: () => ({ jobType: 'core.sleep', jobPayload: { durationMs: 60_000 } }),
    act: async (people, id, handle) => {
      await approve(people.decider, id);
      await untilJobRunning(people, id);
      await handle.cancel();
    },
  },
];

export const APPROVALS = branches.map((branch) => ({ ...branch, name: `approval.${branch.name}` }));

/** Runs a branch to its end. Returns the handle of its workflow. */
export async function playApproval(
  app: TestApp,
  { requestBody, act }: Branch,
): Promise<WorkflowHandle> {
  const as = (actor: string, roles: string) => app.client.as({ actor, roles });
  const participants = {
    app,
    requester: as('asker', 'operator'),
    decider: as('decider', 'approver'),
    other: as('other', 'approver'),
  };
  const { id } = await createRequest(participants.requester, requestBody());
  const handle = await app.deps.temporal.call(20_000, (temporal) =>
    Promise.resolve(temporal.workflow.getHandle(`approval:${id}`)),
  );
  // The workflow has read the record once and waits.
  await eventually(
    () => handle.describe().catch(() => null),
    (found) => (found?.historyLength ?? 0) > 4,
  );
  await act(participants, id, handle);
  await handle.result().catch(() => undefined);
  return handle;
}
