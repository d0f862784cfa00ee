import { pluralOf } from '../../domain/shared/nouns.ts';
/** Texts of times, durations and numbers. They are the same in every language, as logs are. */

const SECOND = 1_000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;

const UNITS: readonly (readonly [number, string])[] = [
  [DAY, 'd'],
  [HOUR, 'h'],
  [MINUTE, 'min'],
  [SECOND, 's'],
];

/**
 * A duration with at most two units: `340 ms`, `2.4 s`, `3 min 12 s`, `2 h`, `3 d 4 h`. Unknown and
 * negative durations are a dash.
 */
export function formatDuration(ms: number): string {
  if (!Number.isFinite(ms) || ms < 0) return '–';
  if (Math.round(ms) < SECOND) return `${Math.round(ms)} ms`;
  // 59.96 s would be shown as 60.0 s.
  if (ms < 10 * SECOND - 50) return `${(ms / SECOND).toFixed(1).replace('.0', '')} s`;
  const whole = Math.round(ms / SECOND) * SECOND;
  const first = UNITS.findIndex(([size]) => whole >= size);
  return UNITS.slice(first, first + 2)
    .map(([size, name], position) => {
      const count = Math.floor((position === 0 ? whole : whole % (UNITS[first]?.[0] ?? 1)) / size);
      return count > 0 ? `${count} ${name}` : '';
    })
    .filter(Boolean)
    .join(' ');
}

export type TimeZoneChoice = { utc: boolean; timeZone?: string | undefined };

const formats = new Map<string, Intl.DateTimeFormat>();

function partsOf(at: Date, { utc, timeZone }: TimeZoneChoice) {
  const zone = utc ? 'UTC' : timeZone;
  let format = formats.get(zone ?? '');
  if (!format) {
    format = new Intl.DateTimeFormat('en-GB', {
      ...(zone !== undefined && { timeZone: zone }),
      year: 'numeric',
      month: 'short',
      day: 'numeric',
      hour: '2-digit',
      minute: '2-digit',
      second: '2-digit',
      hourCycle: 'h23',
      timeZoneName: 'short',
    });
    formats.set(zone ?? '', format);
  }
  const parts = Object.fromEntries(
    format.formatToParts(at).map(({ type, value }) => [type, value]),
  );
  const { day = '', month = '', year = '', hour = '', minute = '', second = '' } = parts;
  return {
    day: `${day} ${month}`,
    year,
    clock: `${hour}:${minute}:${second}`,
    minutes: `${hour}:${minute}`,
    zone: parts.timeZoneName ?? '',
  };
}

let lastToday: { key: string; parts: ReturnType<typeof partsOf> } | undefined;

/** The parts of the present day; a list asks for them with each of its times. */
function partsOfToday(now: Date, choice: TimeZoneChoice) {
  const key = `${now.getTime()} ${choice.utc} ${choice.timeZone ?? ''}`;
  if (lastToday?.key !== key) lastToday = { key, parts: partsOf(now, choice) };
  return lastToday.parts;
}

/** A time with date, seconds and zone: `21 Nov 2026 14:03:22 UTC`. */
export function formatFullTime(at: Date, choice: TimeZoneChoice): string {
  const { day, year, clock, zone } = partsOf(at, choice);
  return `${day} ${year} ${clock} ${zone}`;
}

/**
 * A time as short as it is clear: `14:03:22` today, `21 Nov 14:03` this year, `21 Nov 2025 14:03`
 * before. In UTC it says so.
 */
export function formatTime(at: Date, now: Date, choice: TimeZoneChoice): string {
  const { day, year, clock, minutes } = partsOf(at, choice);
  const today = partsOfToday(now, choice);
  const suffix = choice.utc ? ' UTC' : '';
  if (day === today.day && year === today.year) return `${clock}${suffix}`;
  if (year === today.year) return `${day} ${minutes}${suffix}`;
  return `${day} ${year} ${minutes}${suffix}`;
}

/** A time with milliseconds, for logs: `14:03:22.481`. */
export function formatLogTime(at: Date, choice: TimeZoneChoice): string {
  return `${partsOf(at, choice).clock}.${String(at.getUTCMilliseconds()).padStart(3, '0')}`;
}

const LARGEST_FIRST: readonly (readonly [number, string])[] = [
  [DAY, 'd'],
  [HOUR, 'h'],
  [MINUTE, 'min'],
];

/** How long ago a time is, or how far ahead, in one unit: `3 min ago`, `in 2 h`, `now`. */
export function formatRelative(at: Date, now: Date): string {
  const distance = at.getTime() - now.getTime();
  const size = Math.abs(distance);
  const [unit, name] = LARGEST_FIRST.find(([each]) => size >= each) ?? [SECOND, 's'];
  const count = Math.floor(size / unit);
  if (count === 0 || (unit === SECOND && count < 5)) return 'now';
  return distance < 0 ? `${count} ${name} ago` : `in ${count} ${name}`;
}

/** A whole number with separators: `12,345`. */
export const formatCount = (count: number): string => count.toLocaleString('en-US');

/** How far something is, in whole per cent: 100 only when it is done. */
export const wholePercent = (percent: number): number => Math.floor(percent);

/** A number with separators and all its digits: `12,345.0001`; `1e-7` as JSON has it. */
export function formatNumber(number: number): string {
  const [whole = '', fraction] = String(number).split('.');
  if (whole.includes('e') || fraction?.includes('e')) return String(number);
  return fraction === undefined ? formatCount(number) : `${formatCount(Number(whole))}.${fraction}`;
}

/** A number and its noun: `1 job`, `1,200 jobs`. */
export const formatNumberOf = (count: number, one: string, many = pluralOf(one)): string =>
  `${formatCount(count)} ${count === 1 ? one : many}`;

const BYTE_UNITS = ['bytes', 'KiB', 'MiB', 'GiB', 'TiB', 'PiB'];

/** A size in the largest unit of which there is at least one: `4.2 MiB`. */
export function formatBytes(bytes: number): string {
  let value = bytes;
  let unit = 0;
  while (value >= 1_024 && unit < BYTE_UNITS.length - 1) {
    value /= 1_024;
    unit += 1;
  }
  const text = unit === 0 || value >= 100 ? String(Math.round(value)) : value.toFixed(1);
  return `${text} ${BYTE_UNITS[unit] ?? ''}`;
}

/** Units at the end of names, and how they are written. */
const UNIT_NAMES = new Map([
  ['ms', 'ms'],
  ['mbps', 'Mbps'],
  ['meters', 'm'],
]);

/** An identifier as words in a sentence: `createdAt` is `created at`, `vrfId` is `VRF`, `lengthMeters` is `length (m)`. */
export function wordsOfField(name: string): string {
  const words = name
    .replace(/([a-z0-9])([A-Z])/g, '$1 $2')
    .replace(/[_\-.]+/g, ' ')
    .trim()
    .split(/\s+/);
  if (words.length > 1 && /^ids?$/i.test(words.at(-1) ?? '')) words.pop();
  const unit = words.length > 1 ? UNIT_NAMES.get(words.at(-1)?.toLowerCase() ?? '') : undefined;
  if (unit !== undefined) words.pop();
  const text = words
    .map((word) => (ACRONYMS.has(word.toLowerCase()) ? word.toUpperCase() : word.toLowerCase()))
    .map((word) => word.replace(/^ip(?=[46]$)/, 'IPv'))
    .join(' ');
  return unit === undefined ? text : `${text} (${unit})`;
}

/** An identifier as a label: `createdAt` is `Created at`. */
export function labelOfField(name: string): string {
  const words = wordsOfField(name);
  return words.charAt(0).toUpperCase() + words.slice(1);
}

const ACRONYMS: ReadonlySet<string> = new Set([
  'aoc',
  'api',
  'asn',
  'ca',
  'carp',
  'cidr',
  'dac',
  'dhcp',
  'dn',
  'dns',
  'glbp',
  'hsrp',
  'http',
  'https',
  'id',
  'ip',
  'lag',
  'ldap',
  'mac',
  'mmf',
  'mtu',
  'oidc',
  'rbac',
  'saml',
  'slaac',
  'smf',
  'tls',
  'ui',
  'uri',
  'url',
  'utc',
  'vid',
  'vip',
  'vlan',
  'vrf',
  'vrrp',
]);
