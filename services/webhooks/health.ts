import { writeHealth, type WebhookHealth } from '../../db/webhooks/health.ts';
import type { WriteUnaudited } from '../../db/core/commit.ts';
import type { Log } from '../../platform/log.ts';
import { createLoop } from '../../platform/loop.ts';

export type HealthRecorder = ReturnType<typeof createHealthRecorder>;

/** What an attempt, or a test, says about an endpoint. Undefined is what it does not say. */
export type HealthSign = {
  webhookId: string;
  /** Where it was sent. */
  endpointUrl: string;
  hasFailed?: boolean;
  /** See `isUsableAnswer`. */
  hasAnswered?: boolean;
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

/** The last good sign, and the first bad one after it, with one more sign. They may come later than those after them. */
function withOne(
  [good, bad]: [Date | null, Date | null],
  isGood: boolean | undefined,
  at: Date,
): [Date | null, Date | null] {
  if (isGood === undefined) return [good, bad];
  if (isGood) return [isLater(good, at) ? good : at, isLater(bad, at) ? bad : null];
  const counts = !isLater(good, at) && (bad === null || isLater(bad, at));
  return [good, counts ? at : bad];
}

/** What is known of an endpoint after one more sign. */
export function withSign(
  before: WebhookHealth | undefined,
  { webhookId, endpointUrl, hasFailed, hasAnswered, at }: HealthSign,
): WebhookHealth {
  const hasSucceeded = hasFailed === undefined ? undefined : !hasFailed;
  const [succeededAt, failedAt] = withOne(
    [before?.succeededAt ?? null, before?.failedAt ?? null],
    hasSucceeded,
    at,
  );
  const [answeredAt, unansweredAt] = withOne(
    [before?.answeredAt ?? null, before?.unansweredAt ?? null],
    hasAnswered,
    at,
  );
  return { webhookId, endpointUrl, succeededAt, failedAt, answeredAt, unansweredAt };
}

/**
 * Writes since when webhooks fail, and are unreachable, after the outcomes of the attempts and outside of their transactions: a
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

  const loop = createLoop(
    {
      name: 'health of webhooks',
      everyMs: RETRY_EVERY_MS,
      minIntervalMs: MIN_INTERVAL_MS,
      log,
    },
    flush,
  );

  return {
    /** Notes what an attempt says about its endpoint, and returns immediately. */
    note(sign: HealthSign): void {
      const key = keyOf(sign);
      const before = waiting.get(key);
      if (!before && waiting.size >= MAX_WAITING) return;
      waiting.set(key, withSign(before, sign));
      loop.wake();
    },

    start: loop.start,

    async stop(): Promise<void> {
      await loop.stop();
      while (await flush().catch(() => false));
    },
  };
}
