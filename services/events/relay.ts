import { isLockTimeout } from '../../db/core/constraints.ts';
import type { Knex } from '../../db/core/knex.ts';
import { publishEvents } from '../../db/events/publish.ts';
import { useConnectionsForProcess } from '../../platform/connectionUser.ts';
import type { Log } from '../../platform/log.ts';
import { startLoop, type Loop } from '../../platform/loop.ts';
import type { Metrics } from '../../platform/metrics.ts';
import type { DeliveryQueue } from '../webhooks/deliveryQueue.ts';

export type EventRelay = ReturnType<typeof createEventRelay>;

type Deps = {
  db: Knex;
  deliveryQueue: DeliveryQueue;
  log: Log;
  metrics: Metrics;
};

/** How many events one transaction publishes. */
const BATCH = 200;

/** A process publishes its own events right after the commit; those of a crashed one this often. */
const INTERVAL_MS = 1_000;

/** Rounds are at least this far apart, so that events are published in batches under load. */
const MIN_INTERVAL_MS = 50;

/** How often pending deliveries are checked for free slots: less often while none becomes free. */
const MIN_SLOT_POLL_MS = 100;
const MAX_SLOT_POLL_MS = 400;

/** How long a reader waits, at most, for events that were committed before. */
const FLUSH_TIMEOUT_MS = 1_000;

/**
 * The relay publishes committed events in order, creates jobs for their deliveries, and cancels
 * deliveries of disabled webhooks. Every process runs one; each continues the work of the others.
 */
export function createEventRelay({ db, deliveryQueue, log, metrics }: Deps) {
  let loops: Loop[] = [];
  let flushing: Promise<void> | undefined;
  let nextFlush: Promise<void> | undefined;

  async function publish(lockTimeoutMs?: number): Promise<boolean> {
    const { types, deliveries } = await publishEvents(db, {
      limit: BATCH,
      now: new Date(),
      ...(lockTimeoutMs !== undefined && { lockTimeoutMs }),
    });
    metrics.eventsPublished.inc(types.length);
    // The webhook may have been disabled, which leaves deliveries to cancel.
    if (deliveries > 0 || types.some((type) => type.startsWith('webhook.'))) loops[1]?.wake();
    return types.length === BATCH;
  }

  async function publishAll(): Promise<void> {
    const deadline = Date.now() + FLUSH_TIMEOUT_MS;
    try {
      while ((await publish(FLUSH_TIMEOUT_MS)) && Date.now() < deadline);
    } catch (error) {
      // Another process is publishing for longer than that: the reader does without.
      if (!isLockTimeout(error)) throw error;
    }
  }

  /**
   * Publishes the events that were committed before the call, so that the caller can read them;
   * stops after about a second. Calls during a flush share the next one.
   */
  function flush(): Promise<void> {
    if (!flushing) {
      flushing = useConnectionsForProcess(publishAll).finally(() => (flushing = undefined));
      return flushing;
    }
    nextFlush ??= flushing
      .catch(() => undefined)
      .then(() => {
        nextFlush = undefined;
        return flush();
      });
    return nextFlush;
  }

  let slotPollMs = MIN_SLOT_POLL_MS;
  async function queueDeliveries(): Promise<boolean | number> {
    const { waiting, created, more } = await deliveryQueue.createPendingJobs();
    const cancelling = await deliveryQueue.cancelForDisabledWebhooks();
    slotPollMs =
      created || cancelling ? MIN_SLOT_POLL_MS : Math.min(2 * slotPollMs, MAX_SLOT_POLL_MS);
    return more || (waiting || cancelling ? slotPollMs : false);
  }

  return {
    /** This process has committed events. */
    wake: (): void => loops[0]?.wake(),

    /** Publishes the events that were committed before the call; see above. */
    flush,

    /** Starts the loops that publish events and create jobs for deliveries. */
    start(): void {
      loops = [
        startLoop(
          { name: 'publish events', everyMs: INTERVAL_MS, minIntervalMs: MIN_INTERVAL_MS, log },
          () => publish(),
        ),
        startLoop(
          { name: 'queue deliveries', everyMs: INTERVAL_MS, minIntervalMs: MIN_INTERVAL_MS, log },
          queueDeliveries,
        ),
      ];
    },

    stop: async (): Promise<void> => void (await Promise.all(loops.map((loop) => loop.stop()))),
  };
}
