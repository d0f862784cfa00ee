import { errorMessage } from '../domain/shared/errorMessage.ts';
import type { Log } from '../platform/log.ts';

const PROBE_MS = 5_000;

/** Temporal counts as lost after this many failures in a row: one that restarts is soon back. */
const LOST_AFTER = 2;

type Deps = {
  /** Resolves when Temporal answers within `deadlineMs`. */
  check(deadlineMs: number): Promise<void>;
  log: Log;
};

/**
 * Creates the function that asks whether this process reaches Temporal. The SDK polls without a word until it does, so
 * the log says here when that begins and ends. A process that has never reached it has lost it from the first failure on.
 */
export function createTemporalProbe({ check, log }: Deps): () => Promise<boolean> {
  let failures = LOST_AFTER - 1;
  return async () => {
    try {
      await check(PROBE_MS);
      if (failures >= LOST_AFTER) log.info('the runner reaches Temporal again');
      failures = 0;
    } catch (error) {
      failures++;
      if (failures === LOST_AFTER)
        log.error(
          { reason: errorMessage(error) },
          'the runner takes no jobs: it does not reach Temporal',
        );
    }
    return failures < LOST_AFTER;
  };
}
