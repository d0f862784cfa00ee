/** The five fields of a cron expression, in their order. */
export const CRON_FIELDS = ['minute', 'hour', 'dayOfMonth', 'month', 'dayOfWeek'] as const;
export type CronField = (typeof CRON_FIELDS)[number];

/** The values of each field, sorted. Days of the week are 0 (Sunday) to 6. */
export type Cron = Readonly<Record<CronField, readonly number[]>> & {
  /** How the two day fields go together, by the rule of Vixie cron: see `daysTogether`. */
  days: 'either' | 'both';
};

/** One bad field; `expression` is about the whole. */
export type CronError = { field: CronField | 'expression'; message: string };

type Range = { first: number; last: number; step: number };
type FieldRule = { min: number; max: number; names: readonly string[]; words: string };

const MONTHS = ['jan', 'feb', 'mar', 'apr', 'may', 'jun', 'jul', 'aug', 'sep', 'oct', 'nov', 'dec'];
const WEEKDAYS = ['sun', 'mon', 'tue', 'wed', 'thu', 'fri', 'sat'];

/** `names[i]` stands for `min + i`. */
const RULES: Readonly<Record<CronField, FieldRule>> = {
  minute: { min: 0, max: 59, names: [], words: 'minute' },
  hour: { min: 0, max: 23, names: [], words: 'hour' },
  dayOfMonth: { min: 1, max: 31, names: [], words: 'day of month' },
  month: { min: 1, max: 12, names: MONTHS, words: 'month' },
  dayOfWeek: { min: 0, max: 7, names: WEEKDAYS, words: 'day of week' },
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

const MAX_LENGTH = 255;

/** Days that each month can have, from January. */
const LONGEST = [31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];

/**
 * Reads a cron expression of five fields, or a nickname such as `@daily`: numbers, names, `*`, ranges, steps and lists,
 * as in crontab(5) of Vixie cron; `a/n` stands for a range from `a` to the end of the field, and 7 for Sunday. Returns
 * every bad field.
 */
export function parseCron(text: string): { cron: Cron } | { errors: CronError[] } {
  const expression = text.trim();
  if (expression.length > MAX_LENGTH)
    return wrong(`must not be longer than ${MAX_LENGTH} characters`);
  if (expression.startsWith('@')) {
    const fields = NICKNAMES[expression.toLowerCase()];
    return fields === undefined
      ? wrong(`knows no ${quoted(expression)}, only ${Object.keys(NICKNAMES).join(', ')}`)
      : parseFields(fields.split(' '));
  }
  if (/^(CRON_)?TZ=/i.test(expression))
    return wrong('must not name a time zone: it has a field of its own');
  const fields = expression.split(/[ \t]+/);
  if (expression === '' || fields.length !== CRON_FIELDS.length) {
    const count = expression === '' ? 0 : fields.length;
    return wrong(
      `must have five fields (minute, hour, day of month, month, day of week), and has ${count}`,
    );
  }
  return parseFields(fields);
}

const wrong = (message: string): { errors: CronError[] } => ({
  errors: [{ field: 'expression', message }],
});

const quoted = (text: string): string => JSON.stringify(text.slice(0, 40));

function parseFields(texts: readonly string[]): { cron: Cron } | { errors: CronError[] } {
  const errors: CronError[] = [];
  const valuesOf = (field: CronField): number[] => {
    try {
      return valuesIn(RULES[field], texts[CRON_FIELDS.indexOf(field)] ?? '');
    } catch (error) {
      if (!(error instanceof BadField)) throw error;
      errors.push({ field, message: error.message });
      return [];
    }
  };
  const [minute, hour, dayOfMonth, month, weekdays] = [
    valuesOf('minute'),
    valuesOf('hour'),
    valuesOf('dayOfMonth'),
    valuesOf('month'),
    valuesOf('dayOfWeek'),
  ];
  if (errors.length > 0) return { errors };
  const cron: Cron = {
    minute,
    hour,
    dayOfMonth,
    month,
    dayOfWeek: sorted(weekdays.map((day) => day % 7)),
    days: daysTogether(texts[2] ?? '', texts[4] ?? ''),
  };
  return comesEver(cron)
    ? { cron }
    : {
        errors: [
          { field: 'dayOfMonth', message: `has no day that ${monthsInWords(month)} ever has` },
        ],
      };
}

/**
 * "Both" when a day field begins with a star, so that a field without restriction restricts nothing; "either" when
 * both are restricted (crontab(5); Vixie cron looks at the first character, so that a stepped star counts as one).
 */
const daysTogether = (dayOfMonth: string, dayOfWeek: string): Cron['days'] =>
  dayOfMonth.startsWith('*') || dayOfWeek.startsWith('*') ? 'both' : 'either';

const sorted = (values: readonly number[]): number[] => [...new Set(values)].sort((a, b) => a - b);

/** Every month and day comes at some time on every weekday, but for days that the months do not have. */
const comesEver = ({ dayOfMonth, month, days }: Cron): boolean =>
  days === 'either' || month.some((m) => dayOfMonth.some((d) => d <= (LONGEST[m - 1] ?? 31)));

const monthsInWords = (months: readonly number[]): string =>
  months.map((m) => (MONTHS[m - 1] ?? '').toUpperCase()).join(', ');

/** What is wrong with a field, in words that follow its name. */
class BadField extends Error {}

function valuesIn(rule: FieldRule, text: string): number[] {
  const values = text.split(',').flatMap((part) => {
    const { first, last, step } = rangeIn(rule, part);
    return Array.from(
      { length: Math.floor((last - first) / step) + 1 },
      (_, i) => first + i * step,
    );
  });
  return sorted(values);
}

function rangeIn(rule: FieldRule, part: string): Range {
  const { min, max } = rule;
  const [range = '', stepText, ...tooMany] = part.split('/');
  if (part === '' || tooMany.length > 0)
    throw new BadField(part === '' ? 'has an empty part' : `has two steps in ${quoted(part)}`);
  const step = stepText === undefined ? 1 : stepIn(rule, stepText, part);
  // A star on days of the week is 0 to 6: 7 would be Sunday once more.
  const end = rule.names === WEEKDAYS ? 6 : max;
  if (range === '*') return { first: min, last: end, step };
  const [from = '', to, ...more] = range.split('-');
  if (more.length > 0) throw new BadField(`has ${quoted(range)}, which is no range`);
  const given = valueIn(rule, from, part);
  if (to === undefined)
    return { first: given, last: stepText === undefined ? given : Math.max(given, end), step };
  const last = lastDay(rule, given, valueIn(rule, to, part));
  const first = firstDay(rule, given, last);
  if (last < first)
    throw new BadField(
      `has the range ${quoted(range)}, which ends before it begins; write its two parts, as in ${span(first, end)},${span(min, last)}`,
    );
  return { first, last, step };
}

const span = (first: number, last: number): string =>
  first === last ? String(first) : `${first}-${last}`;

/** Sunday begins a week as 0 or 7. */
const firstDay = ({ names }: FieldRule, first: number, last: number): number =>
  names === WEEKDAYS && first === 7 && last < 7 ? 0 : first;

/** Sunday ends a week, too: `sat-sun`. */
const lastDay = ({ names }: FieldRule, first: number, last: number): number =>
  names === WEEKDAYS && last === 0 && first > 0 ? 7 : last;

/** A step beyond the field would be a way to write the first value, and is a mistake more likely: minutes end at 59. */
function stepIn({ min, max }: FieldRule, text: string, part: string): number {
  const most = max - min;
  if (/^\d{1,3}$/.test(text) && Number(text) >= 1 && Number(text) <= most) return Number(text);
  throw new BadField(
    `has the step ${quoted(text)} in ${quoted(part)}; a step is 1 to ${most} here`,
  );
}

function valueIn({ min, max, names, words }: FieldRule, text: string, part: string): number {
  const named = names.indexOf(text.toLowerCase());
  if (named >= 0) return min + named;
  const allowed = `${words === 'hour' ? 'an' : 'a'} ${words} is ${min} to ${max}${names.length > 0 ? `, or ${names.join(', ')}` : ''}`;
  if (!/^\d{1,3}$/.test(text))
    throw new BadField(`has ${quoted(text)} in ${quoted(part)}; ${allowed}`);
  const value = Number(text);
  if (value < min || value > max) throw new BadField(`has ${value} in ${quoted(part)}; ${allowed}`);
  return value;
}

const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;
const DAY_MS = 24 * HOUR_MS;

/** True when the wall clock time is one of the expression's. Times of the wall clock are milliseconds as if it were UTC. */
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
  const [inMonth, inWeek] = [
    dayOfMonth.includes(wall.getUTCDate()),
    dayOfWeek.includes(wall.getUTCDay()),
  ];
  return days === 'either' ? inMonth || inWeek : inMonth && inWeek;
}

/** Wall clock times of the expression from `fromMs` up to, not including, `toMs`, in their order. */
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

/** The next day that is worth a look: months without any are leapt over. */
function nextDay({ month }: Cron, dayMs: number): number {
  const next = new Date(dayMs + DAY_MS);
  if (month.includes(next.getUTCMonth() + 1)) return next.getTime();
  return Date.UTC(next.getUTCFullYear(), next.getUTCMonth() + 1, 1);
}
