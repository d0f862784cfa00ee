import { listEvents, type EventFilter } from '../../db/events/eventLog.ts';
import type { Knex } from '../../db/core/knex.ts';
import { lastPurgedSequence } from '../../db/retention/state.ts';
import type { StoredEvent } from '../../domain/events/records.ts';
import type { Caller } from '../../domain/shared/caller.ts';
import { createBoundedQueue } from '../../platform/boundedQueue.ts';
import { tenantKey, useConnectionsFor } from '../../platform/connectionUser.ts';
import type { Metrics } from '../../platform/metrics.ts';
import type { Access } from '../access/access.ts';
import type { EventFeed, Follower } from './eventFeed.ts';
import { eventMatcher, onlyTenantOf } from './eventFilter.ts';
import { assertKnown, assertNotPurged } from './purgedEvents.ts';

export type FollowEvents = ReturnType<typeof createFollowEvents>;

/** The next events of a stream; or, from time to time, up to where it is complete without any. */
export type EventStreamItem =
  { kind: 'events'; events: readonly StoredEvent[] } | { kind: 'position'; sequence: number };

/** A stream of events. `close` must be called when nobody reads it any more. */
export type EventStream = {
  items: AsyncIterable<EventStreamItem>;
  close(): void;
};

type Deps = { db: Knex; access: Access; feed: EventFeed; metrics: Metrics };

/** Where a stream begins: after a sequence, or with what is published from now on. */
export type FollowRequest = { filter: EventFilter; after: number | undefined };

/** Events of one item. A client that reads slowly has no more than a few items in memory. */
const BATCH = 100;

/** Interval of the positions that a stream without events sends, which keep connections open. */
const KEEP_ALIVE_MS = 10_000;

/** Followers that are behind the tail read the log themselves, a few at a time. */
const MAX_CONCURRENT_PAGES = 4;
const MAX_QUEUED_PAGES = 5_000;

/**
 * Streams of the event log: what `Events.list` lists, as it is published. A stream ends, with `events_purged` if
 * its client cannot continue, when the database has lost events that were read.
 */
export function createFollowEvents({ db, access, feed, metrics }: Deps) {
  const pages = createBoundedQueue({
    maxRunning: MAX_CONCURRENT_PAGES,
    maxQueued: MAX_QUEUED_PAGES,
    busy: 'Too many streams of events are behind.',
  });

  /** Reads the events after a position from the log. Error: `events_purged`. */
  const readPage = (caller: Caller, filter: EventFilter, after: number) =>
    pages.run(() =>
      useConnectionsFor({ part: 'requests', key: tenantKey(caller.tenantId) }, async () => {
        metrics.eventLogReads.inc({ by: 'follower' });
        const scope = access.scope(caller, 'event:read');
        const page = await listEvents(db, scope, filter, { order: 'oldest', after, limit: BATCH });
        // Read afterwards: what is purged in between must not be missed.
        assertNotPurged(after, await lastPurgedSequence(db, scope, onlyTenantOf(filter)));
        return { events: page.items, upTo: page.lastSequence };
      }),
    );

  /** The first wanted events of those after a position, and up to where that is complete. */
  function takeWanted(follower: Follower, tail: ReturnType<EventFeed['tail']['after']> = []) {
    const wanted = tail.filter((event) => follower.wants(event));
    const events = wanted.slice(0, BATCH);
    const cutAt = wanted.length > BATCH ? events.at(-1)?.sequence : undefined;
    return { events, upTo: cutAt ?? Math.max(follower.position, feed.tail.head()) };
  }

  /** Resolves when there is an event for the follower, after the interval, or when `signal` aborts. */
  async function waitForEvents(follower: Follower, signal: AbortSignal): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<undefined>();
    const done = () => resolve(undefined);
    const timer = setTimeout(done, KEEP_ALIVE_MS);
    signal.addEventListener('abort', done, { once: true });
    follower.wake = done;
    await promise;
    follower.wake = undefined;
    clearTimeout(timer);
    signal.removeEventListener('abort', done);
  }

  /**
   * Opens a stream. Errors before the first item: `events_purged` if events after the sequence are
   * purged, or lost in a restore; those of the database. A follower that is far behind reads pages of the log until the
   * tail has what follows.
   */
  return async function follow(
    caller: Caller,
    { filter, after }: FollowRequest,
    signal: AbortSignal,
  ): Promise<EventStream> {
    const follower: Follower = {
      position: after ?? 0,
      wants: eventMatcher(access.scope(caller, 'event:read'), filter),
      wake: undefined,
      isLost: false,
    };
    const readNext = async () => {
      const tail = feed.tail.after(follower.position);
      return tail ? takeWanted(follower, tail) : readPage(caller, filter, follower.position);
    };

    async function* items(first: Awaited<ReturnType<typeof readNext>>) {
      let next = first;
      // The position comes first: a client that reconnects before the first event has it then.
      let sentAt = -Infinity;
      while (!signal.aborted) {
        if (follower.isLost) return assertKnown(db, follower.position);
        const { events, upTo } = next;
        follower.position = upTo;
        const isDue = performance.now() - sentAt >= KEEP_ALIVE_MS;
        if (events.length > 0) {
          metrics.eventsStreamed.inc(events.length);
          yield { kind: 'events', events } as const;
        } else if (isDue) yield { kind: 'position', sequence: upTo } as const;
        if (events.length > 0 || isDue) sentAt = performance.now();
        else if (upTo >= feed.tail.head()) await waitForEvents(follower, signal);
        next = await readNext();
      }
    }

    try {
      await feed.join(follower);
      follower.position = await firstPosition(after);
      const first = await readNext();
      return { items: items(first), close: () => feed.leave(follower) };
    } catch (error) {
      feed.leave(follower);
      throw error;
    }
  };

  /** The position of a new stream. What the tail has needs no query. Error: `events_purged`. */
  async function firstPosition(after: number | undefined): Promise<number> {
    const head = feed.tail.head();
    if (after === undefined) return head;
    if (after > head || !feed.tail.after(after)) await assertKnown(db, after);
    return after;
  }
}
