import { lockApproval } from '../../db/approvals/approvals.ts';
import { assertDefined } from '../../domain/shared/assert.ts';
import type { CompletionHook } from '../jobs/completion.ts';
import { executionOutcomeOf, finishExecution } from './finishExecution.ts';

/** Ends the execution of an approval request when its bound job has finished. */
export const approvalCompletionHook: CompletionHook = {
  sourceKind: 'approval',
  lockSource: async (work, approvalId) => lockApproval(await work.trx(), approvalId),
  async onFinished(work, job) {
    const approvalId = assertDefined(job.sourceId, 'job.sourceId');
    const approval = await lockApproval(await work.trx(), approvalId);
    if (approval?.execution === 'running' && approval.jobId === job.id)
      finishExecution(work, approval, executionOutcomeOf(job));
  },
};
