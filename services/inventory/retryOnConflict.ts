import { setTimeout as sleep } from 'node:timers/promises';
import { isConcurrencyError, isLockTimeout, isViolation } from '../../db/core/constraints.ts';
import { AppError } from '../../domain/shared/errors.ts';

/** How often a change is attempted when concurrent changes of the same records interfere. */
const MAX_ATTEMPTS = 6;

/** How long a change is attempted when others hold what it may wait for only briefly. */
const MAX_BUSY_MS = 10_000;
/** The pauses between such attempts, in which nobody waits for the change. */
const MAX_BUSY_PAUSE_MS = 250;

/**
 * Attempts a change until it succeeds. The last attempt may wait longer for locks: else a change
 * would never be made where others always wait in a queue. Errors: `conflict`, `unavailable`; others
 * of `attempt`.
 */
export async function retryOnConflict<T>(
  attempt: (isLast: boolean) => Promise<T>,
  maxBusyMs = MAX_BUSY_MS,
): Promise<T> {
  let conflicts = 0;
  let timeouts = 0;
  let busySince: number | undefined;
  let isLast = false;
  for (;;) {
    try {
      return await attempt(isLast);
    } catch (error) {
      if (isLockTimeout(error)) {
        if (isLast) throw busyError();
        busySince ??= performance.now();
        isLast = performance.now() - busySince >= maxBusyMs;
        const pauseMs = Math.min(MAX_BUSY_PAUSE_MS, 20 * ++timeouts);
        await sleep(pauseMs * (0.5 + Math.random() / 2));
        continue;
      }
      if (!isConcurrencyError(error)) throw error;
      if (++conflicts === MAX_ATTEMPTS) throw concurrentChangeError(error);
      await sleep(5 * conflicts * Math.random());
    }
  }
}

type ConcurrentChange = AppError & { code: 'conflict' };

/** `isConcurrentChange` recognises it. */
export const concurrentChangeError = (cause?: unknown): AppError =>
  Object.assign(
    new AppError(
      'conflict',
      'Concurrent changes of the same records prevented this change. Try again.',
    ),
    cause !== undefined && { cause },
  );

/**
 * True for the error of a change with which concurrent changes always interfered. A conflict with other
 * records lists these, and remains.
 */
export const isConcurrentChange = (error: unknown): error is ConcurrentChange =>
  error instanceof AppError && error.code === 'conflict' && error.extra.conflicts === undefined;

/**
 * True for a change that the database has refused every time, however often it was planned again: what
 * it refuses is the change itself, and no concurrent one.
 */
export const isRefusedChange = (error: unknown): boolean =>
  isConcurrentChange(error) && error.cause !== undefined && isViolation(error.cause);

const busyError = () =>
  new AppError('unavailable', 'Other changes occupy what this change needs. Try again.', {
    retryAfterSeconds: 2,
  });
