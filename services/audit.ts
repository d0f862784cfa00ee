import type { Commit } from '../db/commit.ts';
import type { Caller } from '../domain/caller.ts';
import type { DispatchTask } from '../temporal/contracts.ts';

export type Audit = ReturnType<typeof createAudit>;

/** Refusals that one process records a minute; more than that is a flood, which the metrics show. */
const MAX_REFUSALS_A_MINUTE = 120;

/** Notes in the audit trail what was tried and not allowed. */
export function createAudit({ commit }: { commit: Commit<DispatchTask> }) {
  let minute = 0;
  let refusals = 0;

  return {
    /** Records a denied attempt. Past the bound it records nothing, so that a flood cannot fill the trail. */
    async denied(caller: Caller, action: string, detail: object): Promise<void> {
      const now = Math.floor(Date.now() / 60_000);
      if (now !== minute) [minute, refusals] = [now, 0];
      if (++refusals > MAX_REFUSALS_A_MINUTE) return;
      const { idempotency: _, ...unclaimed } = caller;
      await commit(unclaimed, (work) => {
        work.audit(action, { type: 'request', id: caller.requestId }, { after: detail, outcome: 'denied' });
      });
    },
  };
}
