import { LRUCache } from 'lru-cache';
import { Temporal } from 'temporal-polyfill';

/**
 * A period in which a zone has one UTC offset: from `startMs` (epoch, inclusive) to `endMs`
 * (exclusive). The wall clock shows the epoch time plus `offsetMs`. Since 1972 all offsets are
 * whole minutes.
 */
export type OffsetPeriod = { startMs: number; endMs: number; offsetMs: number };

const IANA_NAME = /^[A-Za-z][A-Za-z0-9_+-]*(\/[A-Za-z0-9_+-]+)*$/;

/** Names that ICU accepts but the tz database lacks. The Temporal server would reject them. */
const NOT_IN_TZ_DATABASE = /^(SystemV\/.*|US\/Pacific-New)$/i;

/**
 * The name of an IANA time zone as the tz database spells it, for a name in any case. Undefined
 * when the data of this machine has no such zone.
 */
export function canonicalTimeZone(name: string): string | undefined {
  if (!IANA_NAME.test(name) || NOT_IN_TZ_DATABASE.test(name)) return undefined;
  try {
    return Temporal.Instant.fromEpochMilliseconds(0).toZonedDateTimeISO(name).timeZoneId;
  } catch {
    return undefined;
  }
}

const periodCache = new LRUCache<string, OffsetPeriod[]>({ max: 1_000 });

/** Cached periods of each zone. A zone with daylight saving has two for every year. */
const MAX_CACHED_PERIODS = 200;

/** The offset period of a zone that contains `epochMs`. `zone` comes from `canonicalTimeZone`. */
export function offsetPeriodAt(zone: string, epochMs: number): OffsetPeriod {
  const cached = periodCache.get(zone) ?? [];
  const found = cached.find(({ startMs, endMs }) => epochMs >= startMs && epochMs < endMs);
  if (found) return found;
  const period = findOffsetPeriod(zone, epochMs);
  periodCache.set(zone, [...cached, period].slice(-MAX_CACHED_PERIODS));
  return period;
}

function findOffsetPeriod(zone: string, epochMs: number): OffsetPeriod {
  const at = Temporal.Instant.fromEpochMilliseconds(epochMs).toZonedDateTimeISO(zone);
  // "previous" excludes the instant itself. One millisecond later, a transition at it is included.
  const before = at.add({ milliseconds: 1 }).getTimeZoneTransition('previous');
  const after = at.getTimeZoneTransition('next');
  return {
    startMs: before?.epochMilliseconds ?? -Infinity,
    endMs: after?.epochMilliseconds ?? Infinity,
    offsetMs: at.offsetNanoseconds / 1e6,
  };
}

/** A day of a time zone, as `2026-11-21`, and the instant at which it starts. */
export type ZoneDay = { date: string; start: Date };

/** The last `count` days of a zone up to the one that contains `now`, and the day after it. */
export function lastDays(zone: string, now: Date, count: number): ZoneDay[] {
  const today = Temporal.Instant.fromEpochMilliseconds(now.getTime())
    .toZonedDateTimeISO(zone)
    .toPlainDate();
  return Array.from({ length: count + 1 }, (_, index) => {
    const day = today.add({ days: index + 1 - count });
    const start = day.toZonedDateTime(zone);
    return { date: day.toString(), start: new Date(start.epochMilliseconds) };
  });
}
