import type { PublishedEvent } from '../../domain/events/records.ts';

type Options = { maxEvents: number; maxAgeMs: number; now?: () => number };

/**
 * The newest published events in memory, without gaps. Many followers read the same few events: each
 * continues here where it is, and reads the database only if it is further behind.
 */
export function createEventTail({ maxEvents, maxAgeMs, now = Date.now }: Options) {
  let events: PublishedEvent[] = [];
  /** Everything after this sequence, and up to `head`, is in `events`. */
  let start = 0;
  let head = 0;

  function dropOld(): void {
    const oldest = now() - maxAgeMs;
    const kept = events.findIndex(({ createdAt }) => createdAt.getTime() >= oldest);
    const byAge = kept === -1 ? events.length : kept;
    const count = Math.max(byAge, events.length - maxEvents);
    const last = events[count - 1];
    if (!last) return;
    start = last.sequence;
    events = events.slice(count);
  }

  /** The index of the first event after a sequence. */
  function indexAfter(sequence: number): number {
    let low = 0;
    let high = events.length;
    while (low < high) {
      const middle = (low + high) >>> 1;
      if ((events[middle]?.sequence ?? 0) > sequence) high = middle;
      else low = middle + 1;
    }
    return low;
  }

  return {
    /** The last sequence that was read. */
    head: () => head,

    /** True if the log has other events than the tail at the same positions, or fewer. */
    differsFrom(lastSequence: number, newest: readonly PublishedEvent[]): boolean {
      const ids = new Map(newest.map(({ sequence, id }) => [sequence, id]));
      return (
        lastSequence < head || events.some(({ sequence, id }) => (ids.get(sequence) ?? id) !== id)
      );
    },

    /** Begins again with what was read from the log, of which a purge may have deleted some. */
    reset(lastSequence: number, newest: readonly PublishedEvent[]): void {
      let first = newest.length;
      while (first > 0 && newest[first - 1]?.sequence === lastSequence - (newest.length - first))
        first -= 1;
      events = newest.slice(first);
      head = lastSequence;
      start = lastSequence - events.length;
      dropOld();
    },

    /** Adds the events that follow. */
    append(newer: readonly PublishedEvent[]): void {
      const last = newer.at(-1);
      if (!last) return;
      events.push(...newer);
      head = last.sequence;
      dropOld();
    },

    /** The events after a sequence; undefined if some of them may be here no longer. */
    after(sequence: number): readonly PublishedEvent[] | undefined {
      dropOld();
      return sequence < start ? undefined : events.slice(indexAfter(sequence));
    },
  };
}
