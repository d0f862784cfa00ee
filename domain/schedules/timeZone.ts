import { LRUCache } from 'lru-cache';
import { Temporal } from 'temporal-polyfill';
import { DAY_MS } from '../shared/durations.ts';

/**
 * A period in which a zone has one UTC offset, up to `endMs` (epoch, exclusive). `startMs`
 * (inclusive) is from when on that is known: the period may have started earlier, since finding the
 * start costs far more than finding the end. The wall clock shows the epoch time plus `offsetMs`.
 * Since 1972 all offsets are whole minutes.
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

/**
 * Known periods by zone and year, in which a zone with daylight saving has three. The key includes
 * the year so that schedules that occur once in decades do not displace the periods of others.
 */
const periodCache = new LRUCache<string, OffsetPeriod[]>({ max: 20_000 });

const periodsOf = (zone: string, year: number): OffsetPeriod[] =>
  periodCache.get(`${zone} ${year}`) ?? [];

/**
 * The offset period of a zone that contains `epochMs`, with `startMs` at `epochMs` or earlier.
 * `zone` comes from `canonicalTimeZone`.
 */
export function offsetPeriodAt(zone: string, epochMs: number): OffsetPeriod {
  const isInside = ({ startMs, endMs }: OffsetPeriod) => epochMs >= startMs && epochMs < endMs;
  const year = new Date(epochMs).getUTCFullYear();
  const ofYear = periodsOf(zone, year);
  // Most periods that start in a year end in the next one.
  const found = ofYear.find(isInside) ?? periodsOf(zone, year - 1).find(isInside);
  if (found) return found;
  const period = findOffsetPeriod(zone, epochMs);
  // The same period may be known already, from a later instant on.
  const others = ofYear.filter(({ endMs }) => endMs !== period.endMs);
  periodCache.set(`${zone} ${year}`, [...others, period]);
  return period;
}

/** Who needs the offset at an instant also needs to know whether it changed shortly before. */
const LOOKBACK_MS = 2 * DAY_MS;

function findOffsetPeriod(zone: string, epochMs: number): OffsetPeriod {
  const period = offsetPeriodFrom(zone, epochMs - LOOKBACK_MS);
  return period.endMs > epochMs ? period : offsetPeriodFrom(zone, epochMs);
}

function offsetPeriodFrom(zone: string, startMs: number): OffsetPeriod {
  const start = Temporal.Instant.fromEpochMilliseconds(startMs).toZonedDateTimeISO(zone);
  return {
    startMs,
    endMs: start.getTimeZoneTransition('next')?.epochMilliseconds ?? Infinity,
    offsetMs: start.offsetNanoseconds / 1e6,
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
