import { listPublishedAfter, readLastSequence } from '../../db/events/eventLog.ts';
import type { Knex } from '../../db/core/knex.ts';
import type { PublishedEvent } from '../../domain/events/records.ts';
import { useConnectionsForProcess } from '../../platform/connectionUser.ts';
import { joinRuns } from '../../platform/joinRuns.ts';
import type { Log } from '../../platform/log.ts';
import { createLoop } from '../../platform/loop.ts';
import type { Metrics } from '../../platform/metrics.ts';
import { createEventTail } from './eventTail.ts';
import { whereToContinue } from './purgedEvents.ts';

export type EventFeed = ReturnType<typeof createEventFeed>;

type Deps = { db: Knex; log: Log; metrics: Metrics };

/** A client that follows the log. */
export type Follower = {
  /** The follower needs nothing up to this sequence any more. */
  position: number;
  wants(event: PublishedEvent): boolean;
  /** Set while the follower has read all there is and waits for more. */
  wake: (() => void) | undefined;
  /** What the follower has read is not all in the log any more: it cannot continue. */
  isLost: boolean;
};

/** Events that other processes publish are read this often. Those of this process are read immediately. */
const POLL_MS = 250;

/** Rounds are at least this far apart, so that events are read in batches under load. */
const MIN_INTERVAL_MS = 20;

/** How long the log is left alone after it could not be read. */
const RETRY_MS = 1_000;

const BATCH = 500;

/** What followers that reconnect find in memory. Purges delete only what is older. */
const TAIL_EVENTS = 2_000;
const TAIL_AGE_MS = 600_000;

/**
 * Reads new events once for all followers of this process, whatever their number, while there are
 * any: a smaller sequence never appears later, so they are the events after the last one.
 */
export function createEventFeed({ db, log, metrics }: Deps) {
  const tail = createEventTail({ maxEvents: TAIL_EVENTS, maxAgeMs: TAIL_AGE_MS });
  const followers = new Set<Follower>();
  /** The loops that were stopped have ended. */
  let ended: Promise<void> = Promise.resolve();
  /** Counts the times from which on the tail is not up to date: the last follower has left, or `reload`. */
  let interruptions = 0;
  /** The value of `interruptions` when the tail was loaded. */
  let loadedAt: number | undefined;
  let isFailing = false;

  function announce(events: readonly PublishedEvent[]): void {
    for (const follower of followers) {
      const { position, wake } = follower;
      if (!wake) continue;
      if (events.some((event) => event.sequence > position && follower.wants(event))) {
        follower.wake = undefined;
        wake();
      } else follower.position = Math.max(position, tail.head());
    }
  }

  /** Ends the streams of all followers: clients that connect again learn whether they can continue. */
  function loseFollowers(): void {
    log.warn('the event log has lost events that were read, as after a failover; streams end');
    for (const follower of followers) {
      const { wake } = follower;
      follower.isLost = true;
      follower.wake = undefined;
      wake?.();
    }
  }

  /** Loads the tail, or adds the next events to it. True: there may be more. */
  async function readNext(): Promise<boolean> {
    metrics.eventLogReads.inc({ by: 'process' });
    const startedAt = interruptions;
    if (loadedAt !== interruptions) {
      const head = await readLastSequence(db);
      const read = await listPublishedAfter(db, Math.max(0, head - TAIL_EVENTS), TAIL_EVENTS);
      const newest = read.filter(({ sequence }) => sequence <= head);
      const isLost = (await whereToContinue(db, tail.head())) !== undefined;
      if (startedAt !== interruptions) return true;
      if (isLost || tail.differsFrom(head, newest)) loseFollowers();
      tail.reset(head, newest);
      loadedAt = interruptions;
      announce(newest);
      return false;
    }
    const events = await listPublishedAfter(db, tail.head(), BATCH);
    if (startedAt !== interruptions) return true;
    const [next] = events;
    if (next && next.sequence !== tail.head() + 1) {
      // As after a failover, otherwise there are no gaps: the tail may have events that are lost.
      interruptions += 1;
      return readNext();
    }
    tail.append(events);
    announce(events);
    return events.length === BATCH;
  }

  const read = joinRuns(() => useConnectionsForProcess(readNext));

  async function round(): Promise<boolean | number> {
    try {
      const hasMore = await read();
      isFailing = false;
      return hasMore || POLL_MS;
    } catch (error) {
      if (!isFailing) log.warn({ err: error }, 'new events cannot be read, followers wait');
      isFailing = true;
      return RETRY_MS;
    }
  }

  const loop = createLoop(
    { name: 'follow events', everyMs: POLL_MS, minIntervalMs: MIN_INTERVAL_MS, log },
    round,
  );

  function stopReading(): void {
    interruptions += 1;
    const last = loop.stop();
    ended = ended.then(() => last);
  }

  return {
    tail,

    /** This process has published events. */
    wake: loop.wake,

    /** Reads the log again: after a failover, what was read may not be in it. */
    reload(): void {
      interruptions += 1;
      loop.wake();
    },

    /** Adds a follower, and reads what was published before. Errors: those of the database. */
    async join(follower: Follower): Promise<void> {
      followers.add(follower);
      loop.start();
      await read();
      // Where it begins is decided by what was read now.
      follower.isLost = false;
    },

    /** Removes a follower. */
    leave(follower: Follower): void {
      if (followers.delete(follower) && followers.size === 0) stopReading();
    },

    /** Reads nothing any more. Followers have left before. */
    async stop(): Promise<void> {
      stopReading();
      await ended;
    },
  };
}
