import {
  CancellationScope,
  ParentClosePolicy,
  condition,
  defineSignal,
  executeChild,
  isCancellation,
  proxyActivities,
  proxyLocalActivities,
  setCurrentDetails,
  setHandler,
  workflowInfo,
} from '@temporalio/workflow';
import { WorkflowExecutionAlreadyStartedError } from '@temporalio/common';
import type { ApprovalActivities } from '../../activities/approvals.ts';
import {
  activityQueueOf,
  APPROVAL_CHANGED,
  type ApprovalResult,
  type ApprovalStart,
  type JobRun,
} from '../contracts.ts';
import { attributesOf } from './attributes.ts';
import { STEP } from './shared/stepOptions.ts';

const { lookAtApproval, remindOfApproval, expireApproval, closeApproval } =
  proxyLocalActivities<ApprovalActivities>(STEP);

/** A job that another run has started is looked at in such steps, each twice as long as the one before. */
const FOLLOW_MS = 15_000;
const MAX_FOLLOW_MS = 600_000;

export const approvalChanged = defineSignal(APPROVAL_CHANGED);

/**
 * Waits for the decision about a request or for its expiry, then runs what was bound to it as its child. Every step is
 * decided from the record: a signal only says that there is something to see, so that one lost or doubled changes nothing.
 */
export async function approval({
  approvalId,
  heartbeatMs,
}: ApprovalStart): Promise<ApprovalResult> {
  let news = 0;
  let followed = 0;
  setHandler(approvalChanged, () => void (news += 1));
  try {
    for (;;) {
      const seen = news;
      const step = await lookAtApproval(approvalId);
      if (step.do === 'end') return ended(step.result);
      if (step.do === 'wait') {
        setCurrentDetails(step.note);
        await condition(() => news !== seen, step.ms);
      } else if (step.do === 'follow') {
        setCurrentDetails(step.note);
        if (!(await runChild(step.job)))
          await condition(
            () => news !== seen,
            Math.min(FOLLOW_MS * 2 ** followed++, MAX_FOLLOW_MS),
          );
      } else if (step.do === 'remind') await remindOfApproval(approvalId);
      else if (step.do === 'expire') await expireApproval(approvalId);
      else {
        const earlyMs = await executing(heartbeatMs).executeApproval(approvalId);
        if (earlyMs > 0) await condition(() => news !== seen, earlyMs);
      }
    }
  } catch (failure) {
    // Cancelled in Temporal: nobody will decide any more.
    if (isCancellation(failure))
      await CancellationScope.nonCancellable(() => closeApproval(approvalId));
    throw failure;
  }
}

function ended(result: ApprovalResult): ApprovalResult {
  setCurrentDetails(
    `Ended: ${result.status}${result.execution === 'none' ? '' : `, ${result.execution}`}`,
  );
  return result;
}

/** To plan a large change again takes a while. */
const executing = (heartbeatMs: number) =>
  proxyActivities<ApprovalActivities>({
    taskQueue: activityQueueOf(workflowInfo().taskQueue),
    startToCloseTimeout: '5 minutes',
    heartbeatTimeout: heartbeatMs,
    retry: STEP.retry,
  });

/** Runs the job to its end, which is in its record; false when a run of it was started by somebody else. */
async function runChild({
  workflow,
  workflowId,
  input,
  summary,
  attributes,
}: JobRun): Promise<boolean> {
  try {
    await executeChild(workflow, {
      workflowId,
      args: [input],
      staticSummary: summary,
      typedSearchAttributes: attributesOf(attributes),
      workflowIdReusePolicy: 'REJECT_DUPLICATE',
      parentClosePolicy: ParentClosePolicy.ABANDON,
    });
  } catch (failure) {
    if (failure instanceof WorkflowExecutionAlreadyStartedError) return false;
    if (isCancellation(failure) && CancellationScope.current().consideredCancelled) throw failure;
  }
  return true;
}
