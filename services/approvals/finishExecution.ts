import { approvalChange } from '../../db/approvals/approvals.ts';
import type { Work } from '../../db/core/commit.ts';
import {
  INVENTORY_APPLY,
  STALE_PLAN,
  STALE_TYPE,
  type Execution,
} from '../../domain/approvals/approvals.ts';
import { withChanges, type ApprovalData } from '../../domain/approvals/records.ts';
import type { PlanDifference } from '../../domain/inventory/frozenPlan.ts';
import type { FinalJobStatus, JobError } from '../../domain/jobs/jobs.ts';
import { approvalEventData, approvalSnapshot, approvalSubject } from './approvalAudit.ts';

/** The outcome of an execution. */
export type ExecutionOutcome = {
  execution: Extract<Execution, 'succeeded' | 'failed' | 'stale'>;
  error: JobError | null;
  difference?: PlanDifference | null;
  denied?: boolean;
};

/** Adds the outcome of an execution to a commit. The row of the request must be locked. */
export function finishExecution(
  work: Work,
  approval: ApprovalData,
  { execution, error, difference, denied = false }: ExecutionOutcome,
): void {
  work.change(
    approvalChange(
      approval.id,
      { status: 'approved', execution: approval.execution },
      {
        execution,
        error: error && JSON.stringify(error),
        executed_at: work.now,
        updated_at: work.now,
        ...(difference && { difference: JSON.stringify(difference) }),
      },
    ),
  );
  const after = withChanges(approval, { execution, error });
  const verb = { succeeded: 'succeed', failed: 'fail', stale: 'stale' }[execution];
  work.audit(`workflow.${verb}`, approvalSubject(approval), {
    before: approvalSnapshot(approval),
    after: approvalSnapshot(after),
    ...(denied && { outcome: 'denied' }),
    ...(execution !== 'succeeded' && !denied && { outcome: 'failed' }),
  });
  work.emit('workflow.executed', approvalSubject(approval), approvalEventData(after));
}

const isStale = (type: string, error: JobError | null): boolean =>
  type === INVENTORY_APPLY ? error?.code === STALE_PLAN : error?.code === STALE_TYPE;

/** The outcome of the execution, from the outcome of the bound job. */
export function executionOutcomeOf({
  status,
  error,
  type,
}: {
  status: FinalJobStatus;
  error: JobError | null;
  type: string;
}): ExecutionOutcome {
  if (status === 'succeeded') return { execution: 'succeeded', error: null };
  if (status === 'cancelled')
    return {
      execution: 'failed',
      error: { code: 'job_cancelled', message: 'The job was cancelled' },
    };
  return {
    execution: isStale(type, error) ? 'stale' : 'failed',
    error,
  };
}
