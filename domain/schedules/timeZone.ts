import { LRUCache } from 'lru-cache';
import { Temporal } from 'temporal-polyfill';

/**
 * A time during which a zone keeps one offset: from `startMs` (of the epoch) up to, not including, `endMs`; the wall
 * clock is the epoch time plus `offsetMs`. Offsets are of whole minutes since 1972.
 */
export type OffsetPeriod = { startMs: number; endMs: number; offsetMs: number };

const IANA_NAME = /^[A-Za-z][A-Za-z0-9_+-]*(\/[A-Za-z0-9_+-]+)*$/;

/** Names that ICU knows and the tz database does not: Temporal's server would refuse them. */
const NOT_OF_TZ = /^(SystemV\/.*|US\/Pacific-New)$/i;

/** The name of an IANA zone as the tz database spells it, or undefined when this machine's has no such zone. */
export function zoneName(name: string): string | undefined {
  if (!IANA_NAME.test(name) || NOT_OF_TZ.test(name)) return undefined;
  try {
    return Temporal.Instant.fromEpochMilliseconds(0).toZonedDateTimeISO(name).timeZoneId;
  } catch {
    return undefined;
  }
}

const zones = new LRUCache<string, OffsetPeriod[]>({ max: 1_000 });

/** Periods that are kept of each zone: a bound, since some have two for every year. */
const MAX_KEPT = 200;

/** The period of a zone's offsets in which a time lies. `zone` is a name from `zoneName`. */
export function offsetPeriodAt(zone: string, epochMs: number): OffsetPeriod {
  const known = zones.get(zone) ?? [];
  const found = known.find(({ startMs, endMs }) => epochMs >= startMs && epochMs < endMs);
  if (found) return found;
  const period = lookUp(zone, epochMs);
  zones.set(zone, [...known, period].slice(-MAX_KEPT));
  return period;
}

function lookUp(zone: string, epochMs: number): OffsetPeriod {
  const at = Temporal.Instant.fromEpochMilliseconds(epochMs).toZonedDateTimeISO(zone);
  // "Previous" is before the time itself; one millisecond later it may be the time itself.
  const before = at.add({ milliseconds: 1 }).getTimeZoneTransition('previous');
  const after = at.getTimeZoneTransition('next');
  return {
    startMs: before?.epochMilliseconds ?? -Infinity,
    endMs: after?.epochMilliseconds ?? Infinity,
    offsetMs: at.offsetNanoseconds / 1e6,
  };
}
