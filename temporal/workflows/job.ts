import {
  ActivityCancellationType,
  ActivityFailure,
  ApplicationFailure,
  CancellationScope,
  ChildWorkflowFailure,
  ParentClosePolicy,
  TimeoutFailure,
  executeChild,
  isCancellation,
  proxyActivities,
  proxyLocalActivities,
  workflowInfo,
} from '@temporalio/workflow';
import type { JobActivities } from '../../activities/jobs.ts';
import { defineSearchAttributeKey } from '@temporalio/common';
import {
  activityQueueOf,
  SEARCH_ATTRIBUTES,
  type JobStart,
  type RunAttributes,
} from '../contracts.ts';
import { attributesOf } from './attributes.ts';

/**
 * Attempts are counted and spaced by the job's own policy: the activity names the next wait or says that there is
 * none. What is left to Temporal is what the activity cannot speak for: a lost worker, a database that is away.
 */
const retry = {
  initialInterval: '1 second',
  backoffCoefficient: 2,
  maximumInterval: '1 minute',
} as const;
const cancellationType = ActivityCancellationType.WAIT_CANCELLATION_COMPLETED;

/** Waits longer than this leave the worker and become timers. */
const localRetryThreshold = '5 seconds';

const { settleJob, beginJob, endJob } = proxyLocalActivities<JobActivities>({
  startToCloseTimeout: '5 seconds',
  localRetryThreshold,
  retry,
});

/** Beyond the attempt's own limit there is time to write its outcome. */
const INLINE_MARGIN_MS = 3_000;
const ACTIVITY_MARGIN_MS = 70_000;

/** Runs one job to its end. What happened is in its record; this run carries the id and the settings only. */
export async function job(start: JobStart): Promise<void> {
  try {
    if (start.lane === 'steps') await inSteps(start);
    else await attempts(start).attemptJob(start.jobId, start.lane);
  } catch (failure) {
    const { status, code } = endOf(failure);
    await CancellationScope.nonCancellable(() => settleJob(start.jobId, status, code));
    throw failure;
  }
}

/** Leaves the work to a workflow of its own, whose steps show one by one. */
async function inSteps({ jobId, timeoutMs, heartbeatMs }: JobStart): Promise<void> {
  const run = await beginJob(jobId);
  if (!run) return;
  await executeChild(run.workflow, {
    workflowId: run.workflowId,
    args: [{ ...run.input, timeoutMs, heartbeatMs }],
    staticSummary: run.summary,
    typedSearchAttributes: attributesOf({ ...ownAttributes(), record: run.record }),
    workflowIdReusePolicy: 'REJECT_DUPLICATE',
    parentClosePolicy: ParentClosePolicy.REQUEST_CANCEL,
  });
  await CancellationScope.nonCancellable(() => endJob(jobId));
}

/** What this run can be found by. */
function ownAttributes(): Omit<RunAttributes, 'record'> {
  const { typedSearchAttributes: own } = workflowInfo();
  const of = (name: string) => own.get(defineSearchAttributeKey(name, 'KEYWORD')) ?? 'none';
  return { tenant: of(SEARCH_ATTRIBUTES.tenant), jobType: of(SEARCH_ATTRIBUTES.jobType) };
}

function attempts({ lane, timeoutMs, heartbeatMs }: JobStart) {
  if (lane === 'inline') {
    return proxyLocalActivities<JobActivities>({
      startToCloseTimeout: timeoutMs + INLINE_MARGIN_MS,
      localRetryThreshold,
      retry,
      cancellationType,
    });
  }
  return proxyActivities<JobActivities>({
    ...(lane === 'activity' && { taskQueue: activityQueueOf(workflowInfo().taskQueue) }),
    startToCloseTimeout: timeoutMs + ACTIVITY_MARGIN_MS,
    heartbeatTimeout: heartbeatMs,
    retry,
    cancellationType,
  });
}

/** What the job's record is to say about a run that did not succeed. */
function endOf(failure: unknown): { status: 'failed' | 'cancelled'; code: string } {
  if (isCancellation(failure) || CancellationScope.current().consideredCancelled) {
    return { status: 'cancelled', code: 'cancelled' };
  }
  let cause = failure;
  while (cause instanceof ActivityFailure || cause instanceof ChildWorkflowFailure)
    ({ cause } = cause);
  if (cause instanceof TimeoutFailure) return { status: 'failed', code: 'timed_out' };
  const code = cause instanceof ApplicationFailure ? cause.type : undefined;
  return { status: 'failed', code: code ?? 'unexpected' };
}
