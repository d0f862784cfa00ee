import type { Caller } from '../../domain/shared/caller.ts';
import { currentConnectionUser } from '../../platform/connectionUser.ts';
import type { ReadBudgets } from '../../platform/readBudgets.ts';
import type { Slots } from '../../platform/slots.ts';
import type { HttpResponse } from './response.ts';
import type { Route } from './route.ts';

export type ExpensiveReads = ReturnType<typeof createExpensiveReads>;

/** Parameters that make any list expensive: it counts, groups or searches all matching records. */
const EXPENSIVE_PARAMETERS = ['count', 'facets', 'q'] as const;

const isExpensiveList = (query: Readonly<Record<string, unknown>>): boolean =>
  EXPENSIVE_PARAMETERS.some((name) => query[name] !== undefined && query[name] !== false);

/** Whether requests of a route can be expensive reads, as the API reference says. */
export const canBeExpensive = ({ expensiveRead, method, query }: Route): boolean =>
  expensiveRead !== undefined ||
  (method === 'GET' && EXPENSIVE_PARAMETERS.some((name) => query?.properties[name] !== undefined));

/**
 * Limits expensive reads: few run at a time, and the time that those of a caller and of a tenant
 * use is limited (`readBudgets.ts`).
 */
export const createExpensiveReads = ({
  slots,
  budgets,
}: {
  slots: Slots;
  budgets: ReadBudgets;
}) => ({
  /** Handles a request of an authenticated caller. Errors: `too_many_requests`; those of `handle`. */
  async run(
    route: Route,
    { caller, query, signal }: { caller: Caller; query: unknown; signal: AbortSignal },
    handle: () => Promise<HttpResponse>,
  ): Promise<HttpResponse> {
    budgets.note(caller);
    const isList =
      route.method === 'GET' && isExpensiveList((query ?? {}) as Record<string, unknown>);
    if (!route.expensiveRead && !isList) return handle();
    budgets.admit(caller);
    const user = currentConnectionUser();
    // From now on, all that this request uses is deducted, also while its response is streamed.
    if (user) user.onUsed = (usedMs) => budgets.charge(caller, usedMs);
    return route.expensiveRead?.hasOwnSlots === true ? handle() : slots.run(caller, signal, handle);
  },
});
