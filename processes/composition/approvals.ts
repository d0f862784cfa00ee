import { createApprovals } from '../../services/approvals/approvals.ts';
import { createApprovalChecks } from '../../services/approvals/checks.ts';
import { createDeciders } from '../../services/approvals/deciders.ts';
import { createApprovalDetailsLoader } from '../../services/approvals/details.ts';
import { createApprovalExecution } from '../../services/approvals/execution.ts';
import { createApprovalReconcile } from '../../services/approvals/reconcile.ts';
import { createApprovalRequests } from '../../services/approvals/requests.ts';
import type { InventoryQuestions } from '../../services/inventory/questions.ts';
import type { InventoryWrites } from '../../services/inventory/writes.ts';
import type { Core } from './core.ts';

/** Builds approval requests, decisions and the execution of approved requests. */
export function composeApprovals(
  core: Core,
  inventory: { writes: InventoryWrites; questions: InventoryQuestions },
) {
  const { writes, questions } = inventory;
  const deps = { ...core, writes, questions };
  const checks = createApprovalChecks(deps);
  const execution = createApprovalExecution({ ...deps, checks });
  return {
    execution,
    approvals: createApprovals(deps),
    deciders: createDeciders(deps),
    requests: createApprovalRequests(deps),
    details: createApprovalDetailsLoader({ ...deps, checks }),
    reconcile: createApprovalReconcile({ ...deps, execution }),
  };
}
