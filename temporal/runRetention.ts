import { MINUTE_MS } from '../domain/shared/durations.ts';
import type { TemporalConnection } from './connection.ts';

const DEADLINE_MS = 1_000;
/** How long an answer of Temporal counts; the retention of a namespace rarely changes. */
const CACHED_MS = 10 * MINUTE_MS;

/**
 * Returns how long Temporal keeps workflows after their end, in milliseconds; null while Temporal is
 * unavailable.
 */
export function createReadRunRetention(temporal: TemporalConnection): () => Promise<number | null> {
  let known: { ms: number | null; until: number } | undefined;
  return async () => {
    if (known && performance.now() < known.until) return known.ms;
    try {
      const { config } = await temporal.call(DEADLINE_MS, (client) =>
        client.workflowService.describeNamespace({ namespace: temporal.namespace }),
      );
      const seconds = config?.workflowExecutionRetentionTtl?.seconds;
      known = {
        ms: seconds ? Number(seconds) * 1_000 : null,
        until: performance.now() + CACHED_MS,
      };
    } catch {
      // Many readers of old jobs must not each wait for a server that is unavailable.
      known = { ms: null, until: performance.now() + DEADLINE_MS };
    }
    return known.ms;
  };
}
