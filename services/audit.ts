import type { Commit } from '../db/commit.ts';
import type { Subject } from '../db/core/unitOfWork.ts';
import type { Caller } from '../domain/shared/caller.ts';
import type { Metrics } from '../platform/metrics.ts';
import { networkOf } from '../platform/network.ts';
import type { DispatchTask } from '../temporal/contracts.ts';

export type Audit = ReturnType<typeof createAudit>;

/** Refusals of one budget that a process records a minute; more is a flood, which the metrics show. */
const MAX_REFUSALS_A_MINUTE = 60;

/** Budgets that are told apart; what comes after them in a minute shares one. */
const MAX_BUDGETS = 10_000;

/**
 * A budget for each known actor, and for each kind of attempt from each network, so that a flood from one side does
 * not hide what others tried.
 */
const budgetOf = ({ kind, actorId, address }: Caller, action: string) =>
  kind === 'anonymous' ? `${action} ${networkOf(address)}` : `${kind}:${actorId}`;

/** Notes in the audit trail what was tried and not allowed. */
export function createAudit({
  commit,
  metrics,
}: {
  commit: Commit<DispatchTask>;
  metrics: Metrics;
}) {
  let minute = 0;
  const refusals = new Map<string, number>();

  return {
    /**
     * Records a denied attempt. Past the bound it records nothing, so that a flood cannot fill the trail. `about` is
     * the account that was tried, which has a budget of its own; `subject` is the record, where there is one.
     */
    async denied(
      caller: Caller,
      action: string,
      detail: object,
      {
        about,
        subject = { type: 'request', id: caller.requestId },
      }: { about?: string | undefined; subject?: Subject } = {},
    ): Promise<void> {
      const now = Math.floor(Date.now() / 60_000);
      if (now !== minute) refusals.clear();
      minute = now;
      const own = about === undefined ? budgetOf(caller, action) : `${action} ${about}`;
      const budget = refusals.has(own) || refusals.size < MAX_BUDGETS ? own : 'others';
      const seen = (refusals.get(budget) ?? 0) + 1;
      refusals.set(budget, seen);
      metrics.refused.inc({ action });
      if (seen > MAX_REFUSALS_A_MINUTE) return;
      const { idempotency: _, ...unclaimed } = caller;
      await commit(unclaimed, (work) => {
        work.audit(action, subject, { after: detail, outcome: 'denied' });
      });
    },
  };
}
