import { randomUUID } from 'node:crypto';
import { ApplicationFailure, CancelledFailure, Context } from '@temporalio/activity';
import type { WorkflowHandleWithFirstExecutionRunId, Client } from '@temporalio/client';
import { Worker } from '@temporalio/worker';
import { OTHER_WORKER_NEEDED, type ApprovalState } from '../../domain/dispatch/tasks.ts';
import { activityTaskQueue, poolTaskQueue } from '../../domain/dispatch/workflowIds.ts';
import { workflowBundle } from '../../temporal/bundle.ts';
import type { TestApp } from '../support/app.ts';
import { eventually } from '../support/eventually.ts';

/** What one call of an activity returns. A function is called, to fail or to wait. */
type Answer = object | string | number | boolean | null | undefined | (() => unknown);

/**
 * A path of a workflow that its real activities take only in outages, or after hours. `answers`: what each activity does,
 * call by call; it repeats the last. `act` runs beside the workflow.
 */
type Scripted = {
  name: string;
  workflow: string;
  input: object;
  answers: Record<string, readonly Answer[]>;
  act?(handle: WorkflowHandleWithFirstExecutionRunId, client: Client): Promise<unknown>;
};

const POOL = 'scripted';
const REMOTE_TYPE = 'test.scripted';

/** A local activity that waits longer than five seconds waits with a timer of its workflow. */
const TIMER_MS = 5_200;

const fails =
  (type: string, nextRetryDelay?: number, ...details: unknown[]) =>
  () => {
    const nonRetryable = nextRetryDelay === undefined;
    throw ApplicationFailure.create({
      ...{ type, message: type, nonRetryable, details },
      ...(nextRetryDelay !== undefined && { nextRetryDelay }),
    });
  };

const otherWorker = (waitMs: number) => fails(OTHER_WORKER_NEEDED, undefined, waitMs);

/** Ends when its activity is cancelled. */
async function untilCancelled(): Promise<never> {
  const { cancelled, heartbeat } = Context.current();
  const beating = setInterval(() => heartbeat(), 100);
  try {
    return await cancelled;
  } catch (error) {
    throw error instanceof CancelledFailure ? error : new CancelledFailure('cancelled');
  } finally {
    clearInterval(beating);
  }
}

const limits = { timeoutMs: 5_000, heartbeatMs: 1_000 };
const job = (lane: string, more: object = {}) => ({
  workflow: 'job',
  input: { jobId: 'job_1', lane, ...limits, ...more },
});
const approval = (more: object = {}) => ({
  workflow: 'approval',
  input: { approvalId: 'apr_1', heartbeatMs: 1_000, ...more },
});
const remote = job('remote', { remote: { pool: POOL, type: REMOTE_TYPE } });
const backup = { workflow: 'backup', input: { backupId: 'bkp_1', jobId: 'job_1', ...limits } };
const restore = { workflow: 'restore', input: { purpose: 'restore', jobId: 'job_1', ...limits } };

const pending: ApprovalState = {
  phase: 'pending',
  missingApprovals: 1,
  expiresAt: '2036-01-01T00:00:00.000Z',
  ...{ expiresInMs: 60_000, reminderInMs: null },
};
const queued: ApprovalState = { phase: 'queued' };
const withoutType: ApprovalState = { phase: 'running', job: null };
const finished: ApprovalState = {
  phase: 'finished',
  result: { status: 'approved', execution: 'succeeded' },
};

const hasEvents = (handle: WorkflowHandleWithFirstExecutionRunId, type: string, count = 1) =>
  eventually(
    async () => {
      const { events } = await handle.fetchHistory();
      const ofType = (event: object) => Object.values(event).length > 0 && type in event;
      return (events ?? []).filter((event) => ofType(event) && event[type as keyof typeof event]);
    },
    (found) => found.length >= count,
  );
const timer = 'timerStartedEventAttributes';
const activity = 'activityTaskScheduledEventAttributes';

/** Cancels the workflow when its history has this number of events of a kind. */
const cancelAfter =
  (type: string, count = 1) =>
  async (handle: WorkflowHandleWithFirstExecutionRunId) => {
    await hasEvents(handle, type, count);
    await handle.cancel();
  };

const JOBS: readonly Scripted[] = [
  {
    name: 'job.inline.other-worker',
    ...job('inline'),
    answers: { runJobAttempt: [otherWorker(0), null] },
  },
  {
    name: 'job.inline.other-worker-later',
    ...job('inline'),
    answers: { runJobAttempt: [otherWorker(100), null] },
  },
  {
    name: 'job.steps.other-worker',
    ...job('workflow'),
    answers: { startMultiStepJob: [otherWorker(0), null] },
  },
  {
    name: 'job.steps.no-slot',
    ...job('workflow'),
    answers: { startMultiStepJob: [fails('no_slot', TIMER_MS), null] },
  },
  {
    name: 'job.steps.child-terminated',
    ...job('workflow'),
    answers: {
      startMultiStepJob: [
        {
          ...{ workflow: 'removeBackup', workflowId: `scripted-child:${randomUUID()}` },
          ...{ input: { backupId: 'bkp_1' }, summary: 'child', record: 'bkp_1' },
        },
      ],
      removeArchive: [untilCancelled],
      finalizeJob: [null],
    },
    async act(handle, client) {
      const key = 'childWorkflowExecutionStartedEventAttributes';
      const [started] = await hasEvents(handle, key);
      const id = started?.[key]?.workflowExecution?.workflowId ?? '';
      await client.workflow.getHandle(id).terminate('by hand');
    },
  },
  {
    name: 'job.remote.next-round',
    ...remote,
    answers: { [REMOTE_TYPE]: [null], finalizeRemoteAttempt: [100, null] },
  },
  // Without a runner, nobody asks for the attempt.
  {
    name: 'job.remote.cancel-without-runner',
    ...remote,
    answers: { finalizeJob: [null] },
    act: cancelAfter(activity),
  },
  {
    name: 'job.remote.refused',
    ...remote,
    answers: { [REMOTE_TYPE]: [fails('refused')], finalizeJob: [null] },
  },
  {
    name: 'job.remote.cancel-while-leased',
    ...remote,
    answers: { [REMOTE_TYPE]: [untilCancelled], finalizeJob: [fails('leased', TIMER_MS), null] },
    act: cancelAfter(activity),
  },
  {
    name: 'job.remote.cancel-between-rounds',
    ...remote,
    answers: {
      [REMOTE_TYPE]: [null],
      finalizeRemoteAttempt: [60_000],
      finalizeJob: [null],
    },
    act: cancelAfter(timer),
  },
  {
    name: 'shortJobs.failure',
    workflow: 'shortJobs',
    input: { jobIds: ['job_1', 'job_2'], timeoutMs: 5_000 },
    answers: { runFirstAttempts: [fails('unexpected')], finalizeJobs: [null] },
  },
  {
    name: 'shortJobs.leased',
    workflow: 'shortJobs',
    input: { jobIds: ['job_1', 'job_2'], timeoutMs: 5_000 },
    answers: { runFirstAttempts: [fails('leased', TIMER_MS), null] },
  },
];

const APPROVALS: readonly Scripted[] = [
  {
    name: 'approval.long-history',
    ...approval({ maxHistoryEvents: 5 }),
    answers: { loadApproval: [pending, finished], confirmDecision: [false] },
    async act(handle) {
      await hasEvents(handle, timer);
      await handle.signal('approve', 'dec_unknown');
    },
  },
  {
    name: 'approval.long-history-running',
    ...approval({ maxHistoryEvents: 5 }),
    answers: { loadApproval: [withoutType, withoutType, finished] },
  },
  {
    name: 'approval.put-back',
    ...approval(),
    answers: { loadApproval: [withoutType, pending, finished] },
  },
  {
    name: 'approval.unknown-type',
    ...approval(),
    answers: { loadApproval: [withoutType, withoutType, finished] },
  },
  {
    name: 'approval.other-clock',
    ...approval(),
    answers: { loadApproval: [queued, queued, finished], createBoundJob: [100, 0] },
  },
  {
    name: 'approval.outage',
    ...approval(),
    answers: { loadApproval: [fails('unavailable', TIMER_MS), finished] },
  },
  {
    name: 'approval.cancelled-in-temporal-waiting',
    ...approval(),
    answers: { loadApproval: [withoutType], cancelApproval: [null] },
    act: cancelAfter(timer),
  },
  {
    name: 'approval.cancelled-in-temporal-creating',
    ...approval(),
    answers: {
      loadApproval: [queued],
      createBoundJob: [untilCancelled],
      cancelApproval: [null],
    },
    act: cancelAfter(activity),
  },
];

const OTHERS: readonly Scripted[] = [
  {
    name: 'backup.prune-failed',
    ...backup,
    answers: {
      ...{ snapshotBackup: [null], finalizeArchive: [null], verifyArchive: [null] },
      ...{ completeBackup: [null], pruneBackups: [fails('unexpected')] },
    },
  },
  {
    name: 'backup.prune-cancelled',
    ...backup,
    answers: {
      ...{ snapshotBackup: [null], finalizeArchive: [null], verifyArchive: [null] },
      ...{ completeBackup: [null], pruneBackups: [untilCancelled] },
    },
    act: cancelAfter(activity, 4),
  },
  {
    name: 'backup.clean-up-failed',
    ...backup,
    answers: { snapshotBackup: [fails('worker_lost')], failBackup: [fails('unexpected')] },
  },
  {
    name: 'restore.backup-failed',
    ...restore,
    answers: {
      ...{ loadArchive: [null], compareRecords: [null] },
      createPreRestoreBackup: [
        {
          ...{ backupId: 'bkp_2', workflowId: `scripted-backup:${randomUUID()}` },
          attributes: { tenant: 'platform', jobType: 'backup.restore', record: 'bkp_2' },
        },
      ],
      ...{ snapshotBackup: [fails('store_unavailable')], failBackup: [null] },
      ...{ failRestore: [null], dropStaging: [null] },
    },
  },
  {
    name: 'restore.clean-up-failed',
    ...restore,
    answers: {
      ...{ loadArchive: [fails('unexpected')], failRestore: [fails('unexpected')] },
      dropStaging: [fails('unexpected')],
    },
  },
  {
    name: 'reconcile.failure',
    workflow: 'reconcile',
    input: {},
    answers: {
      ...{ reconcileJobs: [fails('unexpected')], reconcileApprovals: [null] },
      ...{ reconcileBackups: [null], purgeExpired: [null] },
    },
  },
  {
    name: 'reconcileSchedules.failure',
    workflow: 'reconcileSchedules',
    input: {},
    answers: { syncSchedules: [fails('unexpected')] },
  },
];

export const SCRIPTED: readonly Scripted[] = [...JOBS, ...APPROVALS, ...OTHERS];

/** The activities of a script. One that it does not name fails. */
function activitiesOf({ answers }: Scripted): Record<string, () => Promise<unknown>> {
  return Object.fromEntries(
    Object.entries(answers).map(([name, all]) => {
      let calls = 0;
      const answer = async (): Promise<unknown> => {
        const next = all[Math.min(calls++, all.length - 1)];
        return typeof next === 'function' ? await next() : next;
      };
      return [name, answer];
    }),
  );
}

/** Plays a script on a real server, with workers of its own. Returns the handle of its first run. */
export async function playScript(app: TestApp, script: Scripted) {
  const { temporal } = app.deps;
  const taskQueue = `scripted-${randomUUID()}`;
  const options = {
    connection: await temporal.nativeConnection(),
    namespace: temporal.namespace,
    activities: activitiesOf(script),
  };
  const workers = await Promise.all([
    Worker.create({ ...options, taskQueue, workflowBundle: await workflowBundle() }),
    Worker.create({ ...options, taskQueue: activityTaskQueue(taskQueue) }),
    ...(REMOTE_TYPE in script.answers
      ? [Worker.create({ ...options, taskQueue: poolTaskQueue(taskQueue, POOL) })]
      : []),
  ]);
  const runs = workers.map((worker) => worker.run());
  try {
    return await temporal.call(60_000, async (client) => {
      const handle = await client.workflow.start(script.workflow, {
        workflowId: `scripted:${script.name}:${randomUUID()}`,
        ...{ taskQueue, args: [script.input] },
      });
      await script.act?.(handle, client);
      await handle.result().catch(() => undefined);
      return client.workflow.getHandle(handle.workflowId, handle.firstExecutionRunId);
    });
  } finally {
    for (const worker of workers) worker.shutdown();
    await Promise.all(runs);
  }
}
