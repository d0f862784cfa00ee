import type { WorkflowHandle } from '@temporalio/client';
import {
  approve,
  cancel,
  echo,
  prefix,
  reject,
  request,
  untilExecution,
} from '../support/approvals.ts';
import type { TestApp } from '../support/app.ts';
import type { TestClient } from '../support/client.ts';
import { eventually } from '../support/eventually.ts';

/** One branch of the workflow of a request: what is asked for, and what happens then. */
type Branch = {
  name: string;
  ask(): object;
  then(people: People, id: string, handle: WorkflowHandle): Promise<unknown>;
};
type People = { app: TestApp; asker: TestClient; decider: TestClient; other: TestClient };

const soon = (ms: number) => new Date(Date.now() + ms).toISOString();
const running = async ({ app, asker }: People, id: string) => {
  const { jobId } = await untilExecution(asker, id, 'running');
  await eventually(
    () => app.deps.db('jobs').where({ id: jobId }).first(),
    (job) => job.status === 'running',
  );
  return jobId as string;
};

const branches: readonly Branch[] = [
  { name: 'approve', ask: () => echo, then: ({ decider }, id) => approve(decider, id) },
  { name: 'approve-nothing', ask: () => ({}), then: ({ decider }, id) => approve(decider, id) },
  {
    name: 'approve-change',
    ask: () =>
      prefix(`10.${Math.floor(Math.random() * 256)}.${Math.floor(Math.random() * 256)}.0/24`),
    then: ({ decider }, id) => approve(decider, id),
  },
  { name: 'reject', ask: () => echo, then: ({ decider }, id) => reject(decider, id) },
  // The reminders come on the way.
  {
    name: 'expire',
    ask: () => ({ ...echo, expiresAt: soon(8_000) }),
    then: () => Promise.resolve(),
  },
  { name: 'cancel', ask: () => echo, then: ({ asker }, id) => cancel(asker, id) },
  {
    name: 'stale',
    ask: () => prefix('10.250.0.0/16'),
    then: async ({ app, decider }, id) => {
      await app.client
        .as({ actor: 'root', roles: 'platform-admin' })
        .post('/api/inventory/prefixes', { cidr: '10.250.0.0/16' });
      await approve(decider, id);
    },
  },
  {
    name: 'two-approvals',
    ask: () => ({ ...echo, requiredApprovals: 2 }),
    then: async ({ decider, other }, id, handle) => {
      await approve(decider, id);
      await handle.signal('approvalChanged');
      await approve(other, id);
    },
  },
  {
    name: 'later',
    ask: () => ({ ...echo, executeAt: soon(2_000) }),
    then: ({ decider }, id) => approve(decider, id),
  },
  {
    name: 'cancel-later',
    ask: () => ({ ...echo, executeAt: soon(60_000) }),
    then: async ({ asker, decider }, id, handle) => {
      await approve(decider, id);
      await eventually(
        () => handle.describe(),
        ({ historyLength }) => historyLength > 8,
      );
      await cancel(asker, id);
    },
  },
  {
    name: 'job-cancelled',
    ask: () => ({ jobType: 'core.sleep', jobPayload: { durationMs: 60_000 } }),
    then: async (people, id) => {
      await approve(people.decider, id);
      await people.asker.post(`/api/jobs/${await running(people, id)}/cancel`);
    },
  },
  {
    name: 'job-failed',
    ask: () => ({ jobType: 'core.sleep', jobPayload: { durationMs: 1, failAttempts: 100 } }),
    then: ({ decider }, id) => approve(decider, id),
  },
  {
    name: 'followed',
    ask: () => ({
      jobType: 'core.sleep',
      jobPayload: { durationMs: 4_000 },
      executeAt: soon(2_500),
    }),
    then: async ({ app, decider }, id) => {
      await approve(decider, id);
      await eventually(
        () =>
          app.deps.approvals.runs
            .execute(id)
            .then(() => app.deps.db('jobs').where({ source_id: id })),
        (jobs) => jobs.length === 1,
      );
      await app.deps
        .db('jobs')
        .where({ source_id: id })
        .update({ checked_at: new Date(0) });
      await app.deps.reconcile.jobs(AbortSignal.timeout(10_000));
    },
  },
  {
    name: 'cancelled-in-temporal',
    ask: () => echo,
    then: (_people, _id, handle) => handle.cancel(),
  },
  {
    name: 'cancelled-in-temporal-running',
    ask: () => ({ jobType: 'core.sleep', jobPayload: { durationMs: 60_000 } }),
    then: async (people, id, handle) => {
      await approve(people.decider, id);
      await running(people, id);
      await handle.cancel();
    },
  },
];

export const APPROVALS = branches.map((branch) => ({ ...branch, name: `approval.${branch.name}` }));

/** Runs a branch to its end and returns the handle of its workflow. */
export async function playApproval(app: TestApp, { ask, then }: Branch): Promise<WorkflowHandle> {
  const as = (actor: string, roles: string) => app.client.as({ actor, roles });
  const people = {
    app,
    asker: as('asker', 'operator'),
    decider: as('decider', 'approver'),
    other: as('other', 'approver'),
  };
  const { id } = await request(people.asker, ask());
  const handle = await app.deps.link.call(5_000, (temporal) =>
    Promise.resolve(temporal.workflow.getHandle(`approval:${id as string}`)),
  );
  // It has looked at the record once, and waits.
  await eventually(
    () => handle.describe().catch(() => null),
    (found) => (found?.historyLength ?? 0) > 4,
  );
  await then(people, id, handle);
  await handle.result().catch(() => undefined);
  return handle;
}
