import { boundsOf, createSlots } from '../../platform/slots.ts';
import { busyFailure } from '../jobs/busy.ts';
import type { StepTools } from '../jobs/multiStep.ts';

/** Steps of backups and restores that run concurrently in a process. */
export const MAX_CONCURRENT_STEPS = 2;

/**
 * Limits how many steps that read or write all records run concurrently in this process, and of one
 * tenant: each uses a connection of its own and one core. Further steps wait until their signal
 * aborts. Error: `busy` when too many wait.
 */
export function createConcurrencyLimit() {
  const slots = createSlots({
    of: 'backups and restores',
    retryAfterSeconds: 10,
    ...boundsOf(MAX_CONCURRENT_STEPS, 1, 2),
    waiting: boundsOf(40, 20, 20),
  });
  return async function runLimited<T>(
    { caller, signal }: Pick<StepTools, 'caller' | 'signal'>,
    step: () => Promise<T>,
  ): Promise<T> {
    const release = await slots.take(caller, signal).catch((error: unknown) => {
      throw busyFailure(error) ?? error;
    });
    return step().finally(release);
  };
}

export type ConcurrencyLimit = ReturnType<typeof createConcurrencyLimit>;
