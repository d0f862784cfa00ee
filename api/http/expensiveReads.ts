import type { Caller } from '../../domain/shared/caller.ts';
import { currentConnectionUser, tenantKey } from '../../platform/connectionUser.ts';
import type { ReadBudgets } from '../../platform/readBudgets.ts';
import type { Slots } from '../../platform/slots.ts';
import { tenantActivity } from '../../platform/tenantActivity.ts';
import type { HttpResponse } from './response.ts';
import type { Route } from './route.ts';

export type ExpensiveReads = ReturnType<typeof createExpensiveReads>;

/** Parameters that make any list expensive: it counts, groups or searches all matching records. */
const EXPENSIVE_PARAMETERS = ['count', 'facets', 'q'] as const;

type Query = Readonly<Record<string, unknown>>;

const isExpensiveList = (query: Query): boolean =>
  EXPENSIVE_PARAMETERS.some((name) => query[name] !== undefined && query[name] !== false);

/** A list has its page also without what it counts; without the text it would be another list. */
const hasPageWithoutCounts = (route: Route, query: Query): boolean =>
  !route.expensiveRead && query.q === undefined;

/** Whether requests of a route can be expensive reads, as the API reference says. */
export const canBeExpensive = ({ expensiveRead, method, query }: Route): boolean =>
  expensiveRead !== undefined ||
  (method === 'GET' && EXPENSIVE_PARAMETERS.some((name) => query?.properties[name] !== undefined));

/**
 * While other tenants are active, a slot rests for this multiple of the time that a read has taken,
 * within a limit. The response does not wait for it, the next read does.
 */
const REST_FACTOR = 3;
const MAX_REST_MS = 500;

type Deps = {
  slots: Slots;
  budgets: ReadBudgets;
  /** These are for tests. */
  othersAreActive?: (tenant: string) => boolean;
  now?: () => number;
  rest?: (ms: number, end: () => void) => void;
};

/**
 * Limits expensive reads: few run at a time, and the time that those of a caller and of a tenant
 * use is limited (`readBudgets.ts`).
 */
export const createExpensiveReads = ({
  slots,
  budgets,
  othersAreActive = (tenant) => tenantActivity.othersAreActive(tenant),
  now = () => performance.now(),
  rest = (ms, end) => void setTimeout(end, ms).unref(),
}: Deps) => ({
  /**
   * Handles a request of an authenticated caller. Beyond the budget, lists leave out their counts.
   * Errors: `too_many_requests`; those of `handle`.
   */
  async run(
    route: Route,
    { caller, query, signal }: { caller: Caller; query: unknown; signal: AbortSignal },
    handle: () => Promise<HttpResponse>,
  ): Promise<HttpResponse> {
    budgets.note(caller);
    const asked = (query ?? {}) as Query;
    const isList = route.method === 'GET' && isExpensiveList(asked);
    if (!route.expensiveRead && !isList) return handle();
    const user = currentConnectionUser();
    const refusal = budgets.refusal(caller);
    if (refusal && user && hasPageWithoutCounts(route, asked)) {
      user.leavesOutCounts = true;
      return handle();
    }
    if (refusal) throw refusal;
    // From now on, all that this request uses is deducted, also while its response is streamed.
    if (user) user.onUsed = (usedMs) => budgets.charge(caller, usedMs);
    if (route.expensiveRead?.hasOwnSlots === true) return handle();
    const release = await slots.take(caller, signal);
    const startedAt = now();
    try {
      return await handle();
    } finally {
      const restMs = othersAreActive(tenantKey(caller.tenantId))
        ? Math.min(REST_FACTOR * (now() - startedAt), MAX_REST_MS)
        : 0;
      if (restMs > 0) rest(restMs, release);
      else release();
    }
  },
});
