import type { Knex } from '../db/knex.ts';
import { hasUnpublished, publishEvents } from '../db/publish.ts';
import type { Clock } from '../platform/clock.ts';
import type { Ids } from '../platform/ids.ts';
import type { Log } from '../platform/log.ts';
import { startLoop, type Loop } from '../platform/loop.ts';
import type { Metrics } from '../platform/metrics.ts';
import type { DeliveryQueue } from './deliveryQueue.ts';

export type EventRelay = ReturnType<typeof createEventRelay>;

type Deps = { db: Knex; queue: DeliveryQueue; ids: Ids; clock: Clock; log: Log; metrics: Metrics };

/** Events published by one transaction. */
const BATCH = 200;

/** Events that a process has committed are published at once, those of one that died when somebody looks. */
const EVERY_MS = 1_000;

/** Under load a round takes what has gathered: one for each event would cost more than the events. */
const AT_LEAST_MS = 25;

/** When deliveries wait for room, it is looked for so often. */
const WAITING_MS = 100;

/** A reader waits no longer for what was committed before. */
const FLUSH_MS = 1_000;

/**
 * Brings events on their way, in any number of processes: publishes them in order, makes jobs for the deliveries that
 * they owe, cancels deliveries of webhooks that were disabled. What one process leaves undone another one does.
 */
export function createEventRelay({ db, queue, ids, clock, log, metrics }: Deps) {
  let loop: Loop | undefined;
  let again: NodeJS.Timeout | undefined;

  async function publish(): Promise<boolean> {
    if (!(await hasUnpublished(db))) return false;
    const { events } = await publishEvents(db, { limit: BATCH, now: clock.now(), ids });
    metrics.eventsPublished.inc(events);
    return events === BATCH;
  }

  async function round(): Promise<boolean> {
    const morePublished = await publish();
    const { waiting, more } = await queue.queue();
    const cancelling = await queue.cancel();
    clearTimeout(again);
    if (waiting || cancelling) again = setTimeout(() => loop?.wake(), WAITING_MS);
    return morePublished || more;
  }

  return {
    /** Events were committed by this process. */
    wake: (): void => loop?.wake(),

    /** Publishes what was committed until now, so that whoever asks next sees it; gives up when that takes long. */
    async flush(): Promise<void> {
      const until = clock.now().getTime() + FLUSH_MS;
      while ((await publish().catch(() => false)) && clock.now().getTime() < until);
    },

    start(): void {
      loop = startLoop({ name: 'event relay', everyMs: EVERY_MS, atLeastMs: AT_LEAST_MS, log }, round);
    },

    async stop(): Promise<void> {
      clearTimeout(again);
      await loop?.stop();
      clearTimeout(again);
    },
  };
}
