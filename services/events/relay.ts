import { isLockTimeout } from '../../db/core/constraints.ts';
import type { Knex } from '../../db/core/knex.ts';
import type { Notifications } from '../../db/core/notifications.ts';
import { notifyTopics } from '../../db/core/unitOfWork.ts';
import { publishEvents } from '../../db/events/publish.ts';
import { useConnectionsForProcess } from '../../platform/connectionUser.ts';
import { joinRuns } from '../../platform/joinRuns.ts';
import type { Log } from '../../platform/log.ts';
import { createLoop } from '../../platform/loop.ts';
import type { Metrics } from '../../platform/metrics.ts';
import type { DeliveryQueue } from '../webhooks/deliveryQueue.ts';
import type { FirstAttempts } from '../webhooks/firstAttempts.ts';

export type EventRelay = ReturnType<typeof createEventRelay>;

type Deps = {
  db: Knex;
  deliveryQueue: DeliveryQueue;
  firstAttempts: FirstAttempts;
  notifications: Notifications;
  /** Called when this process has published events. Must not throw. */
  onPublished(): void;
  log: Log;
  metrics: Metrics;
};

/** Notification topic: a process that makes no first attempts has published deliveries. */
const DELIVERIES_TOPIC = 'deliveries';

/** How many events one transaction publishes, and how many deliveries it adds. */
const BATCH = 500;
const MAX_DELIVERIES = 1_000;

/** A process publishes its own events right after the commit; those of a crashed one this often. */
const INTERVAL_MS = 1_000;

/**
 * Rounds are at least this far apart, so that events are published in batches under load. After a round with one
 * event at most the next one may follow soon: it is no load, and the next event would wait for nothing.
 */
const MIN_INTERVAL_MS = 40;
const MIN_QUIET_INTERVAL_MS = 10;
const minIntervalAfter = (count: number): number =>
  count > 1 ? MIN_INTERVAL_MS : MIN_QUIET_INTERVAL_MS;

/** How often pending deliveries are checked for free slots: less often while none becomes free. */
const MIN_SLOT_POLL_MS = 100;
const MAX_SLOT_POLL_MS = 400;

/**
 * How long one round cancels deliveries of disabled webhooks before abandoned ones are continued again, and the pause
 * until the next one.
 */
const MAX_REPAIR_MS = 1_000;
const REPAIR_PAUSE_MS = 100;

/** How long a reader waits, at most, for events that were committed before. */
const FLUSH_TIMEOUT_MS = 1_000;

/**
 * The relay publishes committed events in order, starts their deliveries, and cancels those of disabled
 * webhooks. Every process runs one; each continues the work of the others.
 */
export function createEventRelay({
  db,
  deliveryQueue,
  firstAttempts,
  notifications,
  onPublished,
  log,
  metrics,
}: Deps) {
  let unsubscribe: () => void = () => undefined;
  /** Deliveries were published since the last round of the queue. */
  let arePublished = false;
  /** Deliveries are left that no slot was free for. */
  let areWaiting = false;
  /** How many events the last round has published, and how many deliveries the last one has started. */
  let lastPublished = 0;
  let lastStarted = 0;
  const stopping = new AbortController();

  async function publish(options: {
    maxDeliveries: number;
    lockTimeoutMs?: number;
  }): Promise<{ moreEvents: boolean; moreDeliveries: boolean }> {
    const { types, deliveries, areLeft } = await publishEvents(db, {
      limit: BATCH,
      ...options,
    });
    metrics.eventsPublished.inc(types.length);
    lastPublished = types.length;
    if (types.length > 0) onPublished();
    const mayCancel = types.some((type) => type.startsWith('webhook.'));
    // The webhook may have been disabled, which leaves deliveries to cancel.
    if (mayCancel) repairLoop.wake();
    if (deliveries > 0) {
      arePublished = true;
      deliveryLoop.wake();
    }
    if (deliveries > 0 && !firstAttempts.accepts()) await notifyTopics(db, [DELIVERIES_TOPIC]);
    return { moreEvents: types.length === BATCH, moreDeliveries: areLeft };
  }

  /** Deliveries that are left wait for a moment: their webhooks may be locked. */
  async function publishRound(): Promise<boolean | number> {
    const { moreEvents, moreDeliveries } = await publish({ maxDeliveries: MAX_DELIVERIES });
    return moreEvents || (moreDeliveries && MIN_INTERVAL_MS);
  }

  /** Readers wait for sequences only. The loop adds the deliveries. */
  async function publishAll(): Promise<void> {
    const deadline = performance.now() + FLUSH_TIMEOUT_MS;
    const options = { maxDeliveries: 0, lockTimeoutMs: FLUSH_TIMEOUT_MS };
    try {
      for (let more = true; more && performance.now() < deadline;) {
        const { moreEvents, moreDeliveries } = await publish(options);
        if (moreDeliveries) eventLoop.wake();
        more = moreEvents;
      }
    } catch (error) {
      // Another process is publishing for longer than that: the reader does without.
      if (!isLockTimeout(error)) throw error;
    }
  }

  /**
   * Publishes the events that were committed before the call, so that the caller can read them;
   * stops after about a second.
   */
  const flush = joinRuns(() => useConnectionsForProcess(publishAll));

  /**
   * Starts deliveries that this process has slots for, and makes their first attempts. `waiting`: some
   * are left.
   */
  async function startDeliveries(): Promise<{ waiting: boolean; more: boolean; started: number }> {
    const isKnown = arePublished;
    arePublished = false;
    const none = { waiting: false, more: false, started: 0 };
    if (!firstAttempts.accepts()) return none;
    if (!isKnown && !(await deliveryQueue.hasPending())) return none;
    const { more, waiting, attempts } = await deliveryQueue.startPending({
      limit: firstAttempts.freeSlots(),
      leaseMs: firstAttempts.leaseMs,
    });
    firstAttempts.make(attempts);
    return { waiting, more, started: attempts.length };
  }

  let slotPollMs = MIN_SLOT_POLL_MS;
  async function queueDeliveries(): Promise<boolean | number> {
    const { waiting, more, started } = await startDeliveries();
    areWaiting = waiting;
    lastStarted = started;
    slotPollMs = started > 0 ? MIN_SLOT_POLL_MS : Math.min(2 * slotPollMs, MAX_SLOT_POLL_MS);
    return more || (waiting && slotPollMs);
  }

  /** Every second, and when a webhook has changed. No delivery waits for it: cancelling those of one webhook may take long. */
  async function repairDeliveries(): Promise<boolean | number> {
    const signal = AbortSignal.any([stopping.signal, AbortSignal.timeout(MAX_REPAIR_MS)]);
    await deliveryQueue.continueAbandoned();
    return (await deliveryQueue.cancelForDisabledWebhooks(signal)) && REPAIR_PAUSE_MS;
  }

  const eventLoop = createLoop(
    {
      name: 'publish events',
      everyMs: INTERVAL_MS,
      minIntervalMs: () => minIntervalAfter(lastPublished),
      log,
    },
    publishRound,
  );
  const deliveryLoop = createLoop(
    {
      name: 'queue deliveries',
      everyMs: INTERVAL_MS,
      minIntervalMs: () => minIntervalAfter(lastStarted),
      log,
    },
    queueDeliveries,
  );
  const repairLoop = createLoop(
    { name: 'repair deliveries', everyMs: INTERVAL_MS, minIntervalMs: REPAIR_PAUSE_MS, log },
    repairDeliveries,
  );

  return {
    /** This process has committed events. */
    wake: eventLoop.wake,

    /** Publishes the events that were committed before the call; see above. */
    flush,

    /** Starts the loops. They are not started again once they are stopped. */
    start(): void {
      eventLoop.start();
      deliveryLoop.start();
      repairLoop.start();
      unsubscribe = notifications.on(DELIVERIES_TOPIC, deliveryLoop.wake);
    },

    /** A slot is free. */
    onSlotFreed(): void {
      if (areWaiting) deliveryLoop.wake();
    },

    async stop(): Promise<void> {
      unsubscribe();
      stopping.abort();
      await Promise.all([eventLoop, deliveryLoop, repairLoop].map((loop) => loop.stop()));
    },
  };
}
