import {
  ActivityCancellationType,
  ActivityFailure,
  ApplicationFailure,
  CancellationScope,
  ChildWorkflowFailure,
  ContinueAsNew,
  ParentClosePolicy,
  TerminatedFailure,
  TimeoutFailure,
  continueAsNew,
  executeChild,
  isCancellation,
  proxyActivities,
  proxyLocalActivities,
  sleep,
  workflowInfo,
} from '@temporalio/workflow';
import { ApplicationFailureCategory } from '@temporalio/common';
import type { JobActivities } from '../../activities/jobs.ts';
import {
  OTHER_WORKER_NEEDED,
  type FailedFirstAttempt,
  type JobWorkflowInput,
  type ShortJobsInput,
} from '../../domain/dispatch/tasks.ts';
import { activityTaskQueue, poolTaskQueue } from '../../domain/dispatch/workflowIds.ts';
import { DAY_MS } from '../../domain/shared/durations.ts';
import { inheritedAttributes } from './shared/inheritedAttributes.ts';
import { toSearchAttributes } from './shared/searchAttributes.ts';

/**
 * Retries after failures that the activity cannot report itself: a lost worker or an unavailable
 * database. The retry policy of the job is applied by the activity: it counts the attempts in
 * PostgreSQL, and its failures say when the next attempt follows, or that there is none.
 */
const retry = {
  initialInterval: '1 second',
  backoffCoefficient: 2,
  maximumInterval: '1 minute',
} as const;

/** A local activity that must wait longer than this before its retry waits as a workflow timer. */
const localRetryThreshold = '5 seconds';

const cancellationType = ActivityCancellationType.WAIT_CANCELLATION_COMPLETED;

/** Time after the limit of an attempt to record its outcome. */
const INLINE_MARGIN_MS = 3_000;
const ACTIVITY_MARGIN_MS = 70_000;
/**
 * The largest limit that a type may have, with this time. Temporal keeps the timeout of an activity for all its attempts,
 * but the limit of a type may be raised between two of them: each attempt limits itself, and the heartbeat finds a lost
 * worker.
 */
const MAX_ATTEMPT_MS = DAY_MS + ACTIVITY_MARGIN_MS;

const recordOptions = { startToCloseTimeout: '5 seconds', localRetryThreshold, retry } as const;
const { finalizeRemoteAttempt } = proxyLocalActivities<JobActivities>({
  ...recordOptions,
  summary: 'check that the attempt has ended',
});
const { startMultiStepJob } = proxyLocalActivities<JobActivities>({
  ...recordOptions,
  summary: 'claim the job',
});
const { completeMultiStepJob } = proxyLocalActivities<JobActivities>({
  ...recordOptions,
  summary: 'record the success',
});
const { finalizeJob, finalizeJobs } = proxyLocalActivities<JobActivities>({
  ...recordOptions,
  summary: 'record the end',
});

/**
 * Runs one job to its end: its attempts, or the workflow that does its work. The job record in
 * PostgreSQL has payload, log and result; the workflow has only the id and the limits.
 */
export async function job(input: JobWorkflowInput): Promise<void> {
  try {
    await runByLane(input).catch((failure: unknown) => continueElsewhere(input, failure));
  } catch (failure) {
    if (failure instanceof ContinueAsNew) throw failure;
    await recordEnd(input.jobId, failure);
    throw failure;
  }
}

async function runByLane(input: JobWorkflowInput): Promise<void> {
  if (input.lane === 'workflow') await runChildWorkflow(input);
  else if (input.lane === 'remote') await makeRemoteAttempts(input);
  else await makeAttempts(input);
}

/**
 * If another worker must go on, the workflow continues as a new run, which any worker may take; this run
 * would stay with its worker. Throws other failures.
 */
async function continueElsewhere(
  { firstAttempt, ...input }: JobWorkflowInput,
  failure: unknown,
): Promise<void> {
  const cause = causeOf(failure);
  if (!(cause instanceof ApplicationFailure) || cause.type !== OTHER_WORKER_NEEDED) throw failure;
  const waitMs = Number(cause.details?.[0]);
  if (waitMs > 0) await sleep(waitMs, { summary: 'wait for another worker' });
  await continueAsNew<typeof job>(input);
}

/**
 * Makes the first attempts of short jobs that were created at the same time. A job that is not done
 * then goes on in its own workflow.
 */
export async function shortJobs({ jobIds, timeoutMs }: ShortJobsInput): Promise<void> {
  const { runFirstAttempts } = inlineActivities(timeoutMs);
  try {
    await runFirstAttempts(jobIds, timeoutMs);
  } catch (failure) {
    const { status, code } = outcomeOf(failure);
    await CancellationScope.nonCancellable(() => finalizeJobs(jobIds, status, code));
    throw failure;
  }
}

/** Makes attempts until one succeeds or none is left. Each attempt records its own outcome. */
async function makeAttempts(input: JobWorkflowInput): Promise<void> {
  if (input.firstAttempt) await continueAfter(input.firstAttempt);
  const { runJobAttempt } =
    input.lane === 'inline' ? inlineActivities(input.timeoutMs) : queuedActivities(input);
  await runJobAttempt(input.jobId, input.lane);
}

/**
 * Lets runners make attempts until the job has ended. They report to the API; what the end of their
 * activity says decides nothing but when the next one begins.
 */
async function makeRemoteAttempts({ jobId, heartbeatMs, remote }: JobWorkflowInput): Promise<void> {
  if (!remote) throw ApplicationFailure.nonRetryable('The input names no pool', 'unexpected');
  const activities = proxyActivities<Record<string, (input: { jobId: string }) => Promise<void>>>({
    taskQueue: poolTaskQueue(workflowInfo().taskQueue, remote.pool),
    startToCloseTimeout: MAX_ATTEMPT_MS,
    heartbeatTimeout: heartbeatMs,
    retry,
    cancellationType,
    summary: 'attempt',
  });
  for (;;) {
    await activities[remote.type]?.({ jobId });
    const retryInMs = await finalizeRemoteAttempt(jobId);
    if (retryInMs === null) return;
    await sleep(retryInMs, { summary: 'wait for the next attempt' });
  }
}

/** Waits until the next attempt is due. Throws the failure of the first one if it was the last. */
async function continueAfter({ code, retryInMs }: FailedFirstAttempt): Promise<void> {
  if (retryInMs !== null) return sleep(retryInMs, { summary: 'wait for the next attempt' });
  throw ApplicationFailure.create({
    type: code,
    message: `The attempt failed with ${code}`,
    nonRetryable: true,
    category: ApplicationFailureCategory.BENIGN,
  });
}

/** Attempts of the lane `inline` run inside the workflow task. */
const inlineActivities = (timeoutMs: number) =>
  proxyLocalActivities<JobActivities>({
    startToCloseTimeout: timeoutMs + INLINE_MARGIN_MS,
    localRetryThreshold,
    retry,
    cancellationType,
    summary: 'attempt',
  });

/** Attempts of the lane `activity` have their own task queue; deliveries use the main one. */
const queuedActivities = ({ lane, heartbeatMs }: JobWorkflowInput) =>
  proxyActivities<JobActivities>({
    ...(lane === 'activity' && { taskQueue: activityTaskQueue(workflowInfo().taskQueue) }),
    startToCloseTimeout: MAX_ATTEMPT_MS,
    heartbeatTimeout: heartbeatMs,
    retry,
    cancellationType,
    summary: 'attempt',
  });

/** Runs the child workflow that does the work of a multi-step job, then records the success. */
async function runChildWorkflow({
  jobId,
  timeoutMs,
  heartbeatMs,
}: JobWorkflowInput): Promise<void> {
  const child = await startMultiStepJob(jobId);
  if (!child) return;
  await executeChild(child.workflow, {
    workflowId: child.workflowId,
    args: [{ ...child.input, timeoutMs, heartbeatMs }],
    staticSummary: child.summary,
    typedSearchAttributes: toSearchAttributes({ ...inheritedAttributes(), record: child.record }),
    workflowIdReusePolicy: 'REJECT_DUPLICATE',
    workflowTaskTimeout: workflowInfo().taskTimeoutMs,
    parentClosePolicy: ParentClosePolicy.REQUEST_CANCEL,
  });
  await CancellationScope.nonCancellable(() => completeMultiStepJob(jobId));
}

/** Records why the workflow failed, unless the last attempt has recorded it already. */
async function recordEnd(jobId: string, failure: unknown): Promise<void> {
  const { status, code } = outcomeOf(failure);
  await CancellationScope.nonCancellable(() => finalizeJob(jobId, status, code));
}

/** The status and error code of a job whose workflow failed. */
function outcomeOf(failure: unknown): { status: 'failed' | 'cancelled'; code: string } {
  if (isCancellation(failure) || CancellationScope.current().consideredCancelled) {
    return { status: 'cancelled', code: 'cancelled' };
  }
  const cause = causeOf(failure);
  if (cause instanceof TimeoutFailure) return { status: 'failed', code: 'timed_out' };
  if (cause instanceof TerminatedFailure) return { status: 'failed', code: 'workflow_terminated' };
  const code = cause instanceof ApplicationFailure ? cause.type : undefined;
  return { status: 'failed', code: code ?? 'unexpected' };
}

/** What an activity or a child workflow has failed with. */
function causeOf(failure: unknown): unknown {
  let cause = failure;
  while (cause instanceof ActivityFailure || cause instanceof ChildWorkflowFailure)
    ({ cause } = cause);
  return cause;
}
