import type { WorkflowHandle } from '@temporalio/client';
import { authorityOf } from '../../services/access/rights.ts';
import { systemCaller } from '../../domain/shared/caller.ts';
import { DEFAULT_RETRY, type RetryPolicy } from '../../domain/jobs/retry.ts';
import type { FailedFirstAttempt } from '../../domain/dispatch/tasks.ts';
import type { Lane } from '../../domain/jobs/jobType.ts';
import type { TestApp } from '../support/app.ts';
import { eventually } from '../support/eventually.ts';

/** One branch of the job workflow: a job, and what happens to its workflow. */
type Scenario = {
  name: string;
  payload: { durationMs: number; failAttempts?: number };
  retry?: Partial<RetryPolicy>;
  /** The job has finished before its workflow starts. */
  alreadyFinished?: boolean;
  /** Delay of the first workflow task, in milliseconds. */
  startDelayMs?: number;
  /** How the first attempt has failed, which was made without this workflow. */
  firstAttempt?: FailedFirstAttempt;
  act?(handle: WorkflowHandle, jobId: string, app: TestApp): Promise<unknown>;
};

const readColumn = async (app: TestApp, id: string, name: string): Promise<unknown> =>
  (await app.deps.db('jobs').where({ id }).pluck(name))[0];
const cancelOnce =
  (name: string, isEnough: (value: unknown) => boolean) =>
  async (handle: WorkflowHandle, id: string, app: TestApp) => {
    await eventually(() => readColumn(app, id, name), isEnough);
    await handle.cancel();
  };

const longRetry = { initialIntervalSeconds: 600, maxIntervalSeconds: 600 };

const branches: readonly Scenario[] = [
  { name: 'success', payload: { durationMs: 10 } },
  {
    name: 'retry',
    payload: { durationMs: 1, failAttempts: 1 },
    retry: { initialIntervalSeconds: 0.1 },
  },
  // The delay is above the threshold of local retries, so it is a timer of the workflow.
  {
    name: 'retry-later',
    payload: { durationMs: 1, failAttempts: 1 },
    retry: { initialIntervalSeconds: 6 },
  },
  { name: 'failure', payload: { durationMs: 1, failAttempts: 9 }, retry: { maxAttempts: 1 } },
  {
    name: 'failure-after-retry',
    payload: { durationMs: 1, failAttempts: 9 },
    retry: { maxAttempts: 2, initialIntervalSeconds: 0.1 },
  },
  {
    name: 'cancel',
    payload: { durationMs: 60_000 },
    act: cancelOnce('status', (status) => status === 'running'),
  },
  {
    name: 'cancel-between-attempts',
    payload: { durationMs: 1, failAttempts: 9 },
    retry: longRetry,
    act: cancelOnce('error', (error) => error !== null),
  },
  {
    name: 'cancel-before-start',
    payload: { durationMs: 60_000 },
    startDelayMs: 3_000,
    act: (handle) => handle.cancel(),
  },
  { name: 'nothing-to-do', payload: { durationMs: 1 }, alreadyFinished: true },
];

/** What follows a first attempt in a shared run. */
const afterFirstAttempt: readonly Scenario[] = [
  {
    name: 'job.inline.after-first-attempt',
    payload: { durationMs: 1 },
    firstAttempt: { code: 'sleep_failed', retryInMs: 100 },
  },
  {
    name: 'job.inline.after-last-attempt',
    payload: { durationMs: 1 },
    firstAttempt: { code: 'sleep_failed', retryInMs: null },
  },
];

/** Every branch, on every lane. */
export const SCENARIOS: readonly (Scenario & { lane: Lane })[] = [
  ...(['inline', 'activity', 'delivery'] as const).flatMap((lane) =>
    branches.map((branch) => ({ ...branch, lane, name: `job.${lane}.${branch.name}` })),
  ),
  ...afterFirstAttempt.map((branch) => ({ ...branch, lane: 'inline' as const })),
];

/** The branches of runs that several short jobs share. */
export const SHARED_RUNS: readonly Scenario[] = [
  { name: 'shortJobs.success', payload: { durationMs: 10 } },
  { name: 'shortJobs.nothing-to-do', payload: { durationMs: 10 }, alreadyFinished: true },
  {
    name: 'shortJobs.cancel',
    payload: { durationMs: 60_000 },
    act: cancelOnce('status', (status) => status === 'running'),
  },
];

/** Runs a scenario with two jobs in one run, and returns its handle. */
export async function runSharedScenario(app: TestApp, scenario: Scenario): Promise<WorkflowHandle> {
  const jobIds = [app.deps.ids.next('job'), app.deps.ids.next('job')] as const;
  for (const id of jobIds) await insertJob(app, id, scenario);
  const { taskQueue } = app.deps.config;
  const handle = await app.deps.temporal.call(20_000, (client) =>
    client.workflow.start('shortJobs', {
      workflowId: `jobs:${jobIds[0]}`,
      taskQueue,
      args: [{ jobIds, timeoutMs: 5_000 }],
    }),
  );
  await scenario.act?.(handle, jobIds[0], app);
  await handle.result().catch(() => undefined);
  return handle;
}

/** Runs a scenario to its end and returns its handle. */
export async function runScenario(
  app: TestApp,
  scenario: Scenario & { lane: Lane },
): Promise<WorkflowHandle> {
  const id = app.deps.ids.next('job');
  await insertJob(app, id, scenario);
  const { taskQueue } = app.deps.config;
  const handle = await app.deps.temporal.call(20_000, (client) =>
    client.workflow.start('job', {
      workflowId: `job:${id}`,
      taskQueue,
      args: [
        {
          jobId: id,
          lane: scenario.lane,
          timeoutMs: 5_000,
          heartbeatMs: 1_000,
          ...(scenario.firstAttempt && { firstAttempt: scenario.firstAttempt }),
        },
      ],
      ...(scenario.startDelayMs && { startDelay: scenario.startDelayMs }),
    }),
  );
  await scenario.act?.(handle, id, app);
  await handle.result().catch(() => undefined);
  return handle;
}

/** Adds a job that nothing starts. */
export async function insertJob(
  app: { deps: Pick<TestApp['deps'], 'db'> },
  id: string,
  {
    payload,
    retry,
    alreadyFinished,
    firstAttempt,
    cancelRequested,
  }: Pick<Scenario, 'payload' | 'retry' | 'alreadyFinished' | 'firstAttempt'> & {
    cancelRequested?: boolean;
  },
): Promise<void> {
  const now = new Date();
  const authority = authorityOf(systemCaller('platform', id));
  await app.deps.db('jobs').insert({
    id,
    type: 'core.sleep',
    tenant_id: 'platform',
    payload: JSON.stringify(payload),
    status: alreadyFinished ? 'cancelled' : firstAttempt ? 'running' : 'queued',
    attempts: firstAttempt ? 1 : 0,
    finished_at: alreadyFinished ? now : null,
    retry_policy: JSON.stringify({ ...DEFAULT_RETRY, ...retry }),
    authority: JSON.stringify(authority),
    created_by: 'recorder',
    source_kind: 'system',
    created_at: now,
    updated_at: now,
    checked_at: now,
    cancel_requested_at: cancelRequested ? now : null,
  });
}
