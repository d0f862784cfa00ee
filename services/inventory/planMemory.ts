import type { Knex } from '../../db/core/knex.ts';
import { AppError } from '../../domain/shared/errors.ts';

export type PlanMemory = ReturnType<typeof createPlanMemory>;

type Plan = { tenantId: string; bytes: number };

/** A plan that keeps no more never waits for others: there are at most as many as connections. */
const SMALL_PLAN_BYTES = 1_048_576;

const sizeOf = (plans: readonly Plan[]): number => plans.reduce((sum, { bytes }) => sum + bytes, 0);

/**
 * Bounds what the plans of this process keep of the database: `maxBytes` altogether, and half of it for one tenant.
 * A plan that is alone may keep what one plan may load.
 */
export function createPlanMemory({ maxBytes }: { maxBytes: number }) {
  const plans = new Map<Knex, Plan>();

  function assertFits(plan: Plan, bytes: number): void {
    const wanted = plan.bytes + bytes;
    if (wanted <= SMALL_PLAN_BYTES) return;
    const others = [...plans.values()].filter((each) => each !== plan);
    const ofTenant = others.filter(({ tenantId }) => tenantId === plan.tenantId);
    const isOver = (kept: number, limit: number) => kept > 0 && kept + wanted > limit;
    if (isOver(sizeOf(others), maxBytes) || isOver(sizeOf(ofTenant), maxBytes / 2))
      throw new AppError('unavailable', 'Other large changes are in progress. Try again.', {
        retryAfterSeconds: 1,
      });
  }

  return {
    /**
     * Starts the plan of a transaction, instead of its earlier one. Returns the function that adds to what the
     * plan keeps until the transaction ends. Error: `unavailable` if others keep too much.
     */
    start(trx: Knex.Transaction, tenantId: string): (bytes: number) => void {
      const plan = { tenantId, bytes: 0 };
      const forget = () => void plans.delete(trx);
      if (!plans.has(trx)) void trx.executionPromise.then(forget, forget);
      plans.set(trx, plan);
      return (bytes) => {
        assertFits(plan, bytes);
        plan.bytes += bytes;
      };
    },

    /** What is kept now, in bytes. */
    kept: (): number => sizeOf([...plans.values()]),
  };
}
