import {
  CancellationScope,
  ParentClosePolicy,
  condition,
  continueAsNew,
  defineSignal,
  executeChild,
  isCancellation,
  proxyActivities,
  proxyLocalActivities,
  setCurrentDetails,
  setHandler,
  sleep,
  workflowInfo,
} from '@temporalio/workflow';
import { WorkflowExecutionAlreadyStartedError } from '@temporalio/common';
import type { ApprovalActivities } from '../../activities/approvals.ts';
import {
  type ApprovalResult,
  type ApprovalSignal,
  type ApprovalState,
  type ApprovalWorkflowInput,
  type StartJobTask,
} from '../../domain/dispatch/tasks.ts';
import { activityTaskQueue } from '../../domain/dispatch/workflowIds.ts';
import { toSearchAttributes } from './shared/searchAttributes.ts';
import { LOCAL_STEP_OPTIONS } from './shared/stepOptions.ts';
import { counted } from '../../domain/shared/counted.ts';

const { loadApproval, confirmDecision, sendApprovalReminder, expireApproval, cancelApproval } =
  proxyLocalActivities<ApprovalActivities>(LOCAL_STEP_OPTIONS);

/** Each signal carries the id of the committed decision (or cancellation) that it announces. */
export const approve = defineSignal<[decisionId: string], ApprovalSignal>('approve');
export const reject = defineSignal<[decisionId: string], ApprovalSignal>('reject');
export const cancel = defineSignal<[decisionId: string], ApprovalSignal>('cancel');

type Pending = Extract<ApprovalState, { phase: 'pending' }>;

/**
 * The process of an approval request: wait for the decisions, wait until `executeAt`, run the bound
 * job as a child. PostgreSQL holds the state of the request; every step reads it there. A signal
 * announces a decision that is committed already, so that a lost, repeated or forged signal changes
 * nothing.
 */
export async function approval(input: ApprovalWorkflowInput): Promise<ApprovalResult> {
  const decisions = receiveDecisions();
  try {
    const decided = await waitForDecision(input, decisions);
    const due = await waitUntilExecuteAt(input, decisions, decided);
    const started = await startBoundJob(input, due);
    const finished = await runBoundJob(input, started);
    // A restore can put the record back into an earlier phase: the process starts again from there.
    if (finished.phase !== 'finished') return await continueAsNew<typeof approval>(input);
    setCurrentDetails(resultText(finished.result));
    return finished.result;
  } catch (failure) {
    // Someone cancelled the workflow in Temporal: nothing waits for a decision any more.
    if (isCancellation(failure))
      await CancellationScope.nonCancellable(() => cancelApproval(input.approvalId));
    throw failure;
  }
}

/** Handles the three signals. Returns the ids of announced decisions that are not confirmed yet. */
function receiveDecisions(): Set<string> {
  const announced = new Set<string>();
  for (const signal of [approve, reject, cancel])
    setHandler(signal, (decisionId) => void announced.add(decisionId));
  return announced;
}

/**
 * Waits until the request is decided, cancelled or expired. Sends the reminders in the meantime.
 */
async function waitForDecision(
  input: ApprovalWorkflowInput,
  decisions: Set<string>,
): Promise<ApprovalState> {
  for (;;) {
    const state = await loadApproval(input.approvalId);
    if (state.phase !== 'pending') return state;
    if (state.expiresInMs <= 0) await expireApproval(input.approvalId);
    else if (isReminderDue(state)) await sendApprovalReminder(input.approvalId);
    else {
      setCurrentDetails(pendingText(state));
      const isReminderNext = state.reminderInMs !== null && state.reminderInMs < state.expiresInMs;
      await waitForCommittedDecision(input, decisions, {
        timeoutMs: Math.min(state.reminderInMs ?? Infinity, state.expiresInMs),
        summary: isReminderNext ? 'Until the next reminder' : 'Until the request expires',
      });
    }
  }
}

const isReminderDue = ({ reminderInMs }: Pending): boolean =>
  reminderInMs !== null && reminderInMs <= 0;

/** Waits until an approved request may be executed. Ends early if the request is cancelled. */
async function waitUntilExecuteAt(
  input: ApprovalWorkflowInput,
  decisions: Set<string>,
  decided: ApprovalState,
): Promise<ApprovalState> {
  let state = decided;
  while (state.phase === 'deferred') {
    setCurrentDetails(`Approved; starts at ${state.executeAt}`);
    await waitForCommittedDecision(input, decisions, {
      timeoutMs: state.startsInMs,
      summary: 'Until executeAt',
    });
    state = await loadApproval(input.approvalId);
  }
  return state;
}

/** Checks the approved request again and creates its job, or ends the request if it is blocked. */
async function startBoundJob(
  { approvalId, heartbeatMs }: ApprovalWorkflowInput,
  due: ApprovalState,
): Promise<ApprovalState> {
  let state = due;
  while (state.phase === 'queued') {
    // The clock of the database is behind that of Temporal.
    const remainingMs = await longActivities(heartbeatMs).createBoundJob(approvalId);
    if (remainingMs > 0) await sleep(remainingMs, { summary: 'Until executeAt, by another clock' });
    state = await loadApproval(approvalId);
  }
  return state;
}

/**
 * A job whose run was not started here is checked at these intervals, each twice the one before.
 */
const FIRST_CHECK_MS = 2_000;
const MAX_CHECK_MS = 600_000;
/** The largest interval while the asked workers do not know the type of the job. */
const MAX_UNKNOWN_CHECK_MS = 5_000;

/**
 * Runs the bound job as a child, until its record is finished. The same commit finishes the
 * request.
 */
async function runBoundJob(
  input: ApprovalWorkflowInput,
  started: ApprovalState,
): Promise<ApprovalState> {
  let state = started;
  for (let checks = 0; state.phase === 'running'; checks++) {
    const { job } = state;
    const intervalMs = FIRST_CHECK_MS * 2 ** checks;
    if (job === null) {
      setCurrentDetails('Approved; waits for a worker that knows the type of its job');
      await sleep(Math.min(intervalMs, MAX_UNKNOWN_CHECK_MS), {
        summary: 'Until another worker is asked, which may know the type of the job',
      });
      state = await onAnyWorker().loadApproval(input.approvalId);
    } else {
      setCurrentDetails(`Approved; runs ${job.input.jobId}`);
      if (!(await runAsChild(job)))
        await sleep(Math.min(intervalMs, MAX_CHECK_MS), {
          summary: `Until the next check of ${job.input.jobId}, which runs elsewhere`,
        });
      state = await loadApproval(input.approvalId);
    }
    if (state.phase === 'running') await continueLongHistory(input);
  }
  return state;
}

/** Local activities run on the worker of the workflow, for as long as it has the workflow in its memory. */
const onAnyWorker = () =>
  proxyActivities<ApprovalActivities>({
    taskQueue: activityTaskQueue(workflowInfo().taskQueue),
    startToCloseTimeout: LOCAL_STEP_OPTIONS.startToCloseTimeout,
    retry: LOCAL_STEP_OPTIONS.retry,
    summary: 'Ask a worker that may know the type of the job',
  });

/**
 * Runs a job to its end. The outcome is in its record. Returns false if the job has a run already:
 * the reconciler may have started it.
 */
async function runAsChild({
  workflow,
  workflowId,
  input,
  summary,
  attributes,
}: StartJobTask): Promise<boolean> {
  try {
    await executeChild(workflow, {
      workflowId,
      args: [input],
      staticSummary: summary,
      typedSearchAttributes: toSearchAttributes(attributes),
      workflowIdReusePolicy: 'REJECT_DUPLICATE',
      workflowTaskTimeout: workflowInfo().taskTimeoutMs,
      parentClosePolicy: ParentClosePolicy.ABANDON,
    });
  } catch (failure) {
    if (failure instanceof WorkflowExecutionAlreadyStartedError) return false;
    if (isCancellation(failure) && CancellationScope.current().consideredCancelled) throw failure;
  }
  return true;
}

/** Waits until a signal announces a decision that is committed, at most `timeoutMs`. */
async function waitForCommittedDecision(
  input: ApprovalWorkflowInput,
  decisions: Set<string>,
  { timeoutMs, summary }: { timeoutMs: number; summary: string },
): Promise<void> {
  const deadline = Date.now() + timeoutMs;
  for (;;) {
    await continueLongHistory(input);
    const remainingMs = deadline - Date.now();
    if (remainingMs <= 0) return;
    if (!(await condition(() => decisions.size > 0, remainingMs, { summary }))) return;
    for (const decisionId of decisions) {
      decisions.delete(decisionId);
      if (await confirmDecision(input.approvalId, decisionId)) return;
    }
  }
}

/**
 * Continues as a new run before the history becomes too long. Everything that the new run needs is
 * in the record; a signal that was received and not confirmed yet is not lost, since its decision
 * is there.
 */
async function continueLongHistory(input: ApprovalWorkflowInput): Promise<void> {
  const { continueAsNewSuggested, historyLength } = workflowInfo();
  const isTooLong = historyLength >= (input.maxHistoryEvents ?? Infinity);
  if (continueAsNewSuggested || isTooLong) await continueAsNew<typeof approval>(input);
}

/** Planning a large change again takes a while. */
const longActivities = (heartbeatMs: number) =>
  proxyActivities<ApprovalActivities>({
    taskQueue: activityTaskQueue(workflowInfo().taskQueue),
    startToCloseTimeout: '5 minutes',
    heartbeatTimeout: heartbeatMs,
    retry: LOCAL_STEP_OPTIONS.retry,
    summary: 'Check the request again and create its job',
  });

const pendingText = ({ missingApprovals, expiresAt }: Pending): string =>
  `Waits for ${counted(missingApprovals, 'approval')} until ${expiresAt}`;

const resultText = ({ status, execution }: ApprovalResult): string =>
  `Ended: ${status}${execution === 'none' ? '' : `, ${execution}`}`;
