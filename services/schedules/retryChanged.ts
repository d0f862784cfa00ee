import { AppError } from '../../domain/shared/errors.ts';

const MAX_ATTEMPTS = 5;

/** The schedule has changed since it was read and checked. */
export class ConcurrentChange extends Error {}

/**
 * Reads, checks and changes a schedule, again when `attempt` throws `ConcurrentChange`. Error: `unavailable` when the
 * schedule keeps changing; those of `attempt`.
 */
export async function retryChanged<T>(attempt: () => Promise<T>): Promise<T> {
  for (let attempts = 1; attempts <= MAX_ATTEMPTS; attempts++) {
    try {
      return await attempt();
    } catch (error) {
      if (!(error instanceof ConcurrentChange)) throw error;
    }
  }
  throw new AppError('unavailable', 'The schedule keeps changing. Try again.', {
    retryAfterSeconds: 1,
  });
}
