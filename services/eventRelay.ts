import { isLockTimeout } from '../db/core/constraints.ts';
import type { Knex } from '../db/core/knex.ts';
import { hasUnpublished, publishEvents } from '../db/events/publish.ts';
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
const AT_LEAST_MS = 50;

/** When deliveries wait for room, it is looked for so often. */
const WAITING_MS = 100;

/** A reader waits no longer than about this for what was committed before. */
const FLUSH_MS = 1_000;

/**
 * Brings events on their way, in any number of processes: publishes them in order, makes jobs for the deliveries that
 * they owe, cancels deliveries of webhooks that were disabled. What one process leaves undone another one does.
 */
export function createEventRelay({ db, queue, ids, clock, log, metrics }: Deps) {
  let loops: Loop[] = [];
  let flushing: Promise<void> | undefined;
  let following: Promise<void> | undefined;

  async function publish(lockMs?: number): Promise<boolean> {
    if (!(await hasUnpublished(db))) return false;
    const { types, deliveries } = await publishEvents(db, {
      limit: BATCH,
      now: clock.now(),
      ids,
      ...(lockMs !== undefined && { lockMs }),
    });
    metrics.eventsPublished.inc(types.length);
    // A change of a webhook may be that it was disabled: there is something to cancel.
    if (deliveries > 0 || types.some((type) => type.startsWith('webhook.'))) loops[1]?.wake();
    return types.length === BATCH;
  }

  async function publishAll(): Promise<void> {
    const until = clock.now().getTime() + FLUSH_MS;
    try {
      while ((await publish(FLUSH_MS)) && clock.now().getTime() < until);
    } catch (error) {
      // Somebody else is at it for long: the reader sees what there is.
      if (!isLockTimeout(error)) throw error;
    }
  }

  /**
   * Publishes what was committed until now, so that whoever asks next sees it; gives up after about a second. Readers
   * that come while one is at it share the next time.
   */
  function flush(): Promise<void> {
    if (!flushing) {
      flushing = publishAll().finally(() => (flushing = undefined));
      return flushing;
    }
    following ??= flushing
      .catch(() => undefined)
      .then(() => {
        following = undefined;
        return flush();
      });
    return following;
  }

  async function deliver(): Promise<boolean | number> {
    const { waiting, more } = await queue.queue();
    const cancelling = await queue.cancel();
    return more || (waiting || cancelling ? WAITING_MS : false);
  }

  return {
    /** Events were committed by this process. */
    wake: (): void => loops[0]?.wake(),

    flush,

    start(): void {
      loops = [
        startLoop({ name: 'publish events', everyMs: EVERY_MS, atLeastMs: AT_LEAST_MS, log }, () =>
          publish(),
        ),
        startLoop(
          { name: 'queue deliveries', everyMs: EVERY_MS, atLeastMs: AT_LEAST_MS, log },
          deliver,
        ),
      ];
    },

    stop: async (): Promise<void> => void (await Promise.all(loops.map((loop) => loop.stop()))),
  };
}
