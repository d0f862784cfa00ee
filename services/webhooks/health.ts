import { writeHealth, type WebhookHealth } from '../../db/webhooks/health.ts';
import type { WriteUnaudited } from '../../db/core/commit.ts';
import type { Log } from '../../platform/log.ts';
import { startLoop, type Loop } from '../../platform/loop.ts';

export type HealthRecorder = ReturnType<typeof createHealthRecorder>;

/** An attempt that has reached an endpoint, or failed by its fault. */
export type HealthSign = {
  webhookId: string;
  /** Where the attempt was sent. */
  endpointUrl: string;
  hasFailed: boolean;
  at: Date;
};

/** A write that failed is repeated after this time. */
const RETRY_EVERY_MS = 1_000;
/** Nothing waits for a write, but that a webhook which works again has few slots until then. */
const MIN_INTERVAL_MS = 100;

/** How many endpoints one statement writes. */
const BATCH = 200;

/** Endpoints that wait to be written. What is left out is written after a later attempt. */
const MAX_WAITING = 10_000;

const keyOf = ({ webhookId, endpointUrl }: HealthSign | WebhookHealth) =>
  `${webhookId} ${endpointUrl}`;

const isLater = (a: Date | null | undefined, b: Date): boolean => a != null && a > b;

/** What is known of an endpoint after one more attempt. Signs may come later than those after them. */
export function withSign(
  before: WebhookHealth | undefined,
  { webhookId, endpointUrl, hasFailed, at }: HealthSign,
): WebhookHealth {
  const { succeededAt = null, failedAt = null } = before ?? {};
  const endpoint = { webhookId, endpointUrl };
  if (!hasFailed)
    return {
      ...endpoint,
      succeededAt: isLater(succeededAt, at) ? succeededAt : at,
      failedAt: isLater(failedAt, at) ? failedAt : null,
    };
  const counts = !isLater(succeededAt, at) && (failedAt === null || isLater(failedAt, at));
  return { ...endpoint, succeededAt, failedAt: counts ? at : failedAt };
}

/**
 * Writes since when webhooks fail, after the outcomes of the attempts and outside of their transactions: a
 * restore may have locked the webhooks. A process that is killed in between leaves the time as it was, and
 * the next attempt corrects it.
 */
export function createHealthRecorder({
  writeUnaudited,
  log,
}: {
  writeUnaudited: WriteUnaudited;
  log: Log;
}) {
  const waiting = new Map<string, WebhookHealth>();
  let loop: Loop | undefined;

  /**
   * Returns true if there is more. A state is written again if it changes while it is written. What is locked
   * waits behind the others.
   */
  async function flush(): Promise<boolean> {
    const batch = [...waiting].slice(0, BATCH);
    if (batch.length === 0) return false;
    const locked = await writeUnaudited((db) =>
      writeHealth(
        db,
        batch.map(([, health]) => health),
      ),
    );
    for (const [key, health] of batch) {
      if (waiting.get(key) !== health) continue;
      waiting.delete(key);
      if (locked.has(health.webhookId)) waiting.set(key, health);
    }
    return waiting.size > locked.size;
  }

  return {
    /** Notes what an attempt says about its endpoint, and returns immediately. */
    note(sign: HealthSign): void {
      const key = keyOf(sign);
      const before = waiting.get(key);
      if (!before && waiting.size >= MAX_WAITING) return;
      waiting.set(key, withSign(before, sign));
      loop?.wake();
    },

    start(): void {
      loop = startLoop(
        {
          name: 'health of webhooks',
          everyMs: RETRY_EVERY_MS,
          minIntervalMs: MIN_INTERVAL_MS,
          log,
        },
        flush,
      );
    },

    async stop(): Promise<void> {
      await loop?.stop();
      while (await flush().catch(() => false));
    },
  };
}
