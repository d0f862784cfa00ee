import type { Commit } from '../../db/core/commit.ts';
import type { Subject } from '../../db/core/unitOfWork.ts';
import { authorKeyOf, type Caller } from '../../domain/shared/caller.ts';
import type { Metrics } from '../../platform/metrics.ts';
import { networkOf } from '../../platform/network.ts';

export type DeniedAttempts = ReturnType<typeof createDeniedAttempts>;

/** Denied attempts per budget and minute that a process audits. The metrics count all of them. */
const MAX_RECORDED_PER_MINUTE = 60;

/** Distinct budgets per minute; further ones share one budget. */
const MAX_BUDGETS = 10_000;

/**
 * The budget that an attempt counts against: one per authenticated actor, and for anonymous callers
 * one per action and network, so that a flood from one network does not hide other attempts. The
 * names that gateways send count at their tenant, so that a flood in one tenant hides none in others.
 */
const budgetOf = (caller: Caller, action: string) =>
  caller.kind === 'anonymous'
    ? `${action} ${networkOf(caller.address)}`
    : `${caller.kind}:${authorKeyOf(caller)}`;

/** Writes denied attempts to the audit log, within budgets. */
export function createDeniedAttempts({ commit, metrics }: { commit: Commit; metrics: Metrics }) {
  let minute = 0;
  const attemptCounts = new Map<string, number>();

  return {
    /**
     * Audits a denied attempt. Above its budget an attempt is only counted in the metrics, so that
     * a flood cannot fill the audit log. `accountId` is the account that was attacked, which has
     * its own budget; `subject` is the record concerned, by default the request.
     */
    async record(
      caller: Caller,
      action: string,
      detail: object,
      {
        accountId,
        subject = { type: 'request', id: caller.requestId },
      }: { accountId?: string | undefined; subject?: Subject } = {},
    ): Promise<void> {
      const now = Math.floor(Date.now() / 60_000);
      if (now !== minute) attemptCounts.clear();
      minute = now;
      const ownBudget =
        accountId === undefined ? budgetOf(caller, action) : `${action} ${accountId}`;
      const budget =
        attemptCounts.has(ownBudget) || attemptCounts.size < MAX_BUDGETS ? ownBudget : 'others';
      const count = (attemptCounts.get(budget) ?? 0) + 1;
      attemptCounts.set(budget, count);
      metrics.denied.inc({ action });
      if (count > MAX_RECORDED_PER_MINUTE) return;
      const { idempotency: _, ...callerWithoutClaim } = caller;
      await commit(callerWithoutClaim, (work) => {
        work.audit(action, subject, { after: detail, outcome: 'denied' });
      });
    },
  };
}
