import { cut } from '../shared/excerpt.ts';
import { assertDefined } from '../shared/assert.ts';
import { DAY_MS, HOUR_MS, MINUTE_MS } from '../shared/durations.ts';

/** The five fields of a cron expression, in order. */
export const CRON_FIELDS = ['minute', 'hour', 'dayOfMonth', 'month', 'dayOfWeek'] as const;
export type CronField = (typeof CRON_FIELDS)[number];

/** The values of each field, sorted. Days of the week are 0 (Sunday) to 6. */
export type Cron = Readonly<Record<CronField, readonly number[]>> & {
  /** Whether a day must match one of the two day fields or both: see `dayFieldRule`. */
  days: 'either' | 'both';
};

/** An invalid field, or `expression` for an error of the whole expression. */
export type CronError = { field: CronField | 'expression'; message: string };

type ValueRange = { first: number; last: number; step: number };
type FieldRule = { min: number; max: number; names: readonly string[]; label: string };

const MONTHS = ['jan', 'feb', 'mar', 'apr', 'may', 'jun', 'jul', 'aug', 'sep', 'oct', 'nov', 'dec'];
const WEEKDAYS = ['sun', 'mon', 'tue', 'wed', 'thu', 'fri', 'sat'];

/** `names[i]` is the name of the value `min + i`. */
const RULES: Readonly<Record<CronField, FieldRule>> = {
  minute: { min: 0, max: 59, names: [], label: 'minute' },
  hour: { min: 0, max: 23, names: [], label: 'hour' },
  dayOfMonth: { min: 1, max: 31, names: [], label: 'day of month' },
  month: { min: 1, max: 12, names: MONTHS, label: 'month' },
  dayOfWeek: { min: 0, max: 7, names: WEEKDAYS, label: 'day of week' },
};

const NICKNAMES: Readonly<Record<string, string>> = {
  '@yearly': '0 0 1 1 *',
  '@annually': '0 0 1 1 *',
  '@monthly': '0 0 1 * *',
  '@weekly': '0 0 * * 0',
  '@daily': '0 0 * * *',
  '@midnight': '0 0 * * *',
  '@hourly': '0 * * * *',
};

const KNOWN = Object.keys(NICKNAMES).join(', ');

const MAX_LENGTH = 255;

/** Days that each month can have, from January. */
const MAX_DAYS_IN_MONTH = [31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];

/**
 * Parses a cron expression of five fields, or a nickname such as `@daily`, as in crontab(5) of
 * Vixie cron: numbers, names, `*`, ranges, steps and lists. In addition, `a/n` is a range from `a`
 * to the end of the field; 7 is Sunday, like 0. Returns all invalid fields, not only the first.
 */
export function parseCron(text: string): { cron: Cron } | { errors: CronError[] } {
  const expression = text.trim();
  if (expression.length > MAX_LENGTH)
    return invalidExpression(`must not be longer than ${MAX_LENGTH} characters`);
  if (expression.startsWith('@')) {
    const fields = NICKNAMES[expression.toLowerCase()];
    return fields === undefined
      ? invalidExpression(`has the unknown nickname ${quoted(expression)}; known are ${KNOWN}`)
      : parseFields(fields.split(' '));
  }
  if (/^(CRON_)?TZ=/i.test(expression))
    return invalidExpression('must not name a time zone; use the field timezone');
  const fields = expression.split(/[ \t]+/);
  if (expression === '' || fields.length !== CRON_FIELDS.length) {
    const count = expression === '' ? 0 : fields.length;
    return invalidExpression(
      `must have five fields (minute, hour, day of month, month, day of week), and has ${count}`,
    );
  }
  return parseFields(fields);
}

const invalidExpression = (message: string): { errors: CronError[] } => ({
  errors: [{ field: 'expression', message }],
});

const quoted = (text: string): string => JSON.stringify(cut(text, 40));

function parseFields(texts: readonly string[]): { cron: Cron } | { errors: CronError[] } {
  const errors: CronError[] = [];
  const textOf = (field: CronField): string =>
    assertDefined(texts[CRON_FIELDS.indexOf(field)], field);
  const valuesOf = (field: CronField): number[] => {
    try {
      return parseField(RULES[field], textOf(field));
    } catch (error) {
      if (!(error instanceof CronFieldError)) throw error;
      errors.push({ field, message: error.message });
      return [];
    }
  };
  const cron: Cron = {
    minute: valuesOf('minute'),
    hour: valuesOf('hour'),
    dayOfMonth: valuesOf('dayOfMonth'),
    month: valuesOf('month'),
    dayOfWeek: sorted(valuesOf('dayOfWeek').map((day) => day % 7)),
    days: dayFieldRule(textOf('dayOfMonth'), textOf('dayOfWeek')),
  };
  if (errors.length > 0) return { errors };
  return canEverOccur(cron)
    ? { cron }
    : {
        errors: [{ field: 'dayOfMonth', message: `names no day of ${monthNames(cron.month)}` }],
      };
}

/**
 * `both` when a day field starts with a star, `either` when both fields are restricted
 * (crontab(5)). Like Vixie cron, this checks only the first character, so that `*` and `*` with a
 * step are the same.
 */
const dayFieldRule = (dayOfMonth: string, dayOfWeek: string): Cron['days'] =>
  dayOfMonth.startsWith('*') || dayOfWeek.startsWith('*') ? 'both' : 'either';

const sorted = (values: readonly number[]): number[] => [...new Set(values)].sort((a, b) => a - b);

/** False when no selected month has any of the selected days, as for 30 February. */
const canEverOccur = ({ dayOfMonth, month, days }: Cron): boolean =>
  days === 'either' ||
  month.some((m) => dayOfMonth.some((d) => d <= assertDefined(MAX_DAYS_IN_MONTH[m - 1], 'month')));

const monthNames = (months: readonly number[]): string =>
  months.map((m) => assertDefined(MONTHS[m - 1], 'month').toUpperCase()).join(', ');

/** The message says what is wrong with a field; it follows the name of the field. */
class CronFieldError extends Error {}

function parseField(rule: FieldRule, text: string): number[] {
  const values = text.split(',').flatMap((item) => {
    const { first, last, step } = parseRange(rule, item);
    return Array.from(
      { length: Math.floor((last - first) / step) + 1 },
      (_, i) => first + i * step,
    );
  });
  return sorted(values);
}

function parseRange(rule: FieldRule, item: string): ValueRange {
  const { min, max } = rule;
  const [range = '', stepText, ...tooMany] = item.split('/');
  if (item === '' || tooMany.length > 0)
    throw new CronFieldError(
      item === '' ? 'has an empty part' : `has two steps in ${quoted(item)}`,
    );
  const step = stepText === undefined ? 1 : parseStep(rule, stepText, item);
  // A star on the day of the week is 0 to 6: 7 would repeat Sunday.
  const fieldEnd = rule.names === WEEKDAYS ? 6 : max;
  if (range === '*') return { first: min, last: fieldEnd, step };
  const [from = '', to, ...more] = range.split('-');
  if (more.length > 0) throw new CronFieldError(`has ${quoted(range)}, which is not a range`);
  const start = parseValue(rule, from, item);
  if (to === undefined)
    return { first: start, last: stepText === undefined ? start : Math.max(start, fieldEnd), step };
  const last = sundayAsLast(rule, start, parseValue(rule, to, item));
  const first = sundayAsFirst(rule, start, last);
  if (last < first)
    throw new CronFieldError(
      `has the range ${quoted(range)}, which ends before it starts; ` +
        `write it as two ranges, as in ${formatRange(first, fieldEnd)},${formatRange(min, last)}`,
    );
  return { first, last, step };
}

const formatRange = (first: number, last: number): string =>
  first === last ? String(first) : `${first}-${last}`;

/** Sunday as the start of a range may be 0 or 7: `7-2` is `0-2`. */
const sundayAsFirst = ({ names }: FieldRule, first: number, last: number): number =>
  names === WEEKDAYS && first === 7 && last < 7 ? 0 : first;

/** Sunday may also end a range: `sat-sun` is `6-7`. */
const sundayAsLast = ({ names }: FieldRule, first: number, last: number): number =>
  names === WEEKDAYS && last === 0 && first > 0 ? 7 : last;

/**
 * A step larger than the field would select the first value only. It is rejected, since it is more
 * likely a mistake, such as a step of 60 minutes.
 */
function parseStep({ min, max }: FieldRule, text: string, item: string): number {
  const maxStep = max - min;
  if (/^\d{1,3}$/.test(text) && Number(text) >= 1 && Number(text) <= maxStep) return Number(text);
  throw new CronFieldError(
    `has the step ${quoted(text)} in ${quoted(item)}; a step is 1 to ${maxStep} here`,
  );
}

function parseValue({ min, max, names, label }: FieldRule, text: string, item: string): number {
  const nameIndex = names.indexOf(text.toLowerCase());
  if (nameIndex >= 0) return min + nameIndex;
  const article = label === 'hour' ? 'an' : 'a';
  const orNames = names.length > 0 ? `, or ${names.join(', ')}` : '';
  const allowed = `${article} ${label} is ${min} to ${max}${orNames}`;
  if (!/^\d{1,3}$/.test(text))
    throw new CronFieldError(`has ${quoted(text)} in ${quoted(item)}; ${allowed}`);
  const value = Number(text);
  if (value < min || value > max)
    throw new CronFieldError(`has ${value} in ${quoted(item)}; ${allowed}`);
  return value;
}

/** True when a wall clock time matches. `wallMs` is in milliseconds as if the zone were UTC. */
export function matchesCron(cron: Cron, wallMs: number): boolean {
  if (wallMs % MINUTE_MS !== 0) return false;
  const wall = new Date(wallMs);
  return (
    cron.minute.includes(wall.getUTCMinutes()) &&
    cron.hour.includes(wall.getUTCHours()) &&
    matchesDay(cron, wall)
  );
}

function matchesDay({ month, dayOfMonth, dayOfWeek, days }: Cron, wall: Date): boolean {
  if (!month.includes(wall.getUTCMonth() + 1)) return false;
  const matchesDayOfMonth = dayOfMonth.includes(wall.getUTCDate());
  const matchesDayOfWeek = dayOfWeek.includes(wall.getUTCDay());
  return days === 'either'
    ? matchesDayOfMonth || matchesDayOfWeek
    : matchesDayOfMonth && matchesDayOfWeek;
}

/**
 * Yields the wall clock times that match from `fromMs` (inclusive) to `toMs` (exclusive), in order,
 * in milliseconds as if the zone were UTC.
 */
export function* wallTimes(cron: Cron, fromMs: number, toMs: number): Generator<number> {
  for (
    let dayMs = Math.floor(fromMs / DAY_MS) * DAY_MS;
    dayMs < toMs;
    dayMs = nextDay(cron, dayMs)
  ) {
    if (!matchesDay(cron, new Date(dayMs))) continue;
    for (const hour of cron.hour) {
      const hourMs = dayMs + hour * HOUR_MS;
      if (hourMs + HOUR_MS <= fromMs) continue;
      for (const minute of cron.minute) {
        const ms = hourMs + minute * MINUTE_MS;
        if (ms >= toMs) return;
        if (ms >= fromMs) yield ms;
      }
    }
  }
}

/**
 * The start of the next day that can match: days are skipped that the month or, if both day fields
 * must match, the day of the month excludes. So an expression that matches once in decades costs
 * a few steps a year.
 */
function nextDay({ month, dayOfMonth, days }: Cron, dayMs: number): number {
  const next = new Date(dayMs + DAY_MS);
  const year = next.getUTCFullYear();
  const monthOfNext = next.getUTCMonth() + 1;
  if (!month.includes(monthOfNext)) {
    const laterInYear = month.find((value) => value > monthOfNext);
    return laterInYear === undefined
      ? Date.UTC(year + 1, assertDefined(month[0], 'month') - 1, 1)
      : Date.UTC(year, laterInYear - 1, 1);
  }
  if (days === 'either') return next.getTime();
  const endOfMonthMs = Date.UTC(year, monthOfNext, 1);
  const date = dayOfMonth.find((value) => value >= next.getUTCDate());
  // The month may be shorter than the day of the month.
  return date === undefined
    ? endOfMonthMs
    : Math.min(Date.UTC(year, monthOfNext - 1, date), endOfMonthMs);
}
