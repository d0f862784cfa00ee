import { isDeepStrictEqual } from 'node:util';
import type { Commit } from '../../db/core/commit.ts';
import type { Subject } from '../../db/core/unitOfWork.ts';
import { authorKeyOf, systemCaller, type Caller } from '../../domain/shared/caller.ts';
import { MINUTE_MS } from '../../domain/shared/durations.ts';
import type { Log } from '../../platform/log.ts';
import type { Metrics } from '../../platform/metrics.ts';
import { networkOf } from '../../platform/network.ts';

export type DeniedAttempts = ReturnType<typeof createDeniedAttempts>;

/** Denied attempts per budget and minute that a process audits one by one. The metrics count all of them. */
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

/** The budget of the attempts beyond `MAX_BUDGETS`. */
const OTHERS = 'others';

/**
 * Attempts with one action at one tenant that were not audited one by one, with the last caller. The subject is the
 * record that all of them concern, if there is one.
 */
type Omitted = { caller: Caller; action: string; subject: Subject; count: number };

const subjectOfRequest = ({ requestId }: Caller): Subject => ({ type: 'request', id: requestId });

type Budget = { recorded: number; omitted: Map<string, Omitted> };

/** Adds an attempt above its budget. A budget names as many actions and tenants as it audits attempts. */
function omit({ omitted }: Budget, attempt: Omit<Omitted, 'count'>): void {
  const key = `${attempt.action} ${attempt.caller.tenantId}`;
  const known = omitted.get(key);
  if (!known && omitted.size >= MAX_RECORDED_PER_MINUTE) return;
  const isSame = !known || isDeepStrictEqual(known.subject, attempt.subject);
  const subject = isSame ? attempt.subject : subjectOfRequest(attempt.caller);
  omitted.set(key, { ...attempt, subject, count: (known?.count ?? 0) + 1 });
}

/** Writes denied attempts to the audit log, within budgets. */
export function createDeniedAttempts({
  commit,
  metrics,
  log,
}: {
  commit: Commit;
  metrics: Metrics;
  log: Log;
}) {
  let minute = 0;
  let budgets = new Map<string, Budget>();
  let reported: typeof budgets | undefined;

  /** Audits how many attempts a minute has left out. */
  async function reportOmitted(counted: typeof budgets, since: Date): Promise<void> {
    for (const [name, { omitted }] of counted)
      for (const { caller, action, subject, count } of omitted.values()) {
        // They were of more than one caller.
        const author = name === OTHERS ? systemCaller(caller.tenantId, caller.requestId) : caller;
        const network = caller.kind === 'anonymous' && { network: networkOf(caller.address) };
        await commit(withoutClaim({ ...author, address: null }), (work) => {
          work.audit(action, subject, {
            after: { omitted: count, since, ...(name !== OTHERS && network) },
            outcome: 'denied',
          });
        }).catch((error: unknown) =>
          log.warn(
            { err: error, action, tenantId: caller.tenantId, omitted: count },
            'denied attempts that were only counted are not audited',
          ),
        );
      }
  }

  /** At the end of the minute. A process that stops before has counted the attempts in the metrics only. */
  function scheduleReport(): void {
    if (reported === budgets) return;
    reported = budgets;
    const counted = budgets;
    const since = new Date(minute * MINUTE_MS);
    setTimeout(
      () => void reportOmitted(counted, since),
      (minute + 1) * MINUTE_MS - Date.now(),
    ).unref();
  }

  function budgetFor(name: string): Budget {
    const now = Math.floor(Date.now() / MINUTE_MS);
    if (now !== minute) budgets = new Map();
    minute = now;
    const key = budgets.has(name) || budgets.size < MAX_BUDGETS ? name : OTHERS;
    const budget = budgets.get(key) ?? { recorded: 0, omitted: new Map() };
    budgets.set(key, budget);
    return budget;
  }

  return {
    /**
     * Audits a denied attempt. Above its budget an attempt is counted, in the metrics and for one entry
     * at the end of the minute, so that a flood cannot fill the audit log. `accountId` is the account
     * that was attacked, which has its own budget; `subject` is the record concerned, by default the
     * request.
     */
    async record(
      caller: Caller,
      action: string,
      detail: object,
      {
        accountId,
        subject = subjectOfRequest(caller),
      }: { accountId?: string | undefined; subject?: Subject } = {},
    ): Promise<void> {
      const budget = budgetFor(
        accountId === undefined ? budgetOf(caller, action) : `${action} ${accountId}`,
      );
      metrics.denied.inc({ action });
      if (budget.recorded >= MAX_RECORDED_PER_MINUTE) {
        omit(budget, { caller, action, subject });
        scheduleReport();
        return;
      }
      budget.recorded += 1;
      await commit(withoutClaim(caller), (work) => {
        work.audit(action, subject, { after: detail, outcome: 'denied' });
      });
    },
  };
}

const withoutClaim = ({ idempotency, ...caller }: Caller): Caller => caller;
