import fc from 'fast-check';

/** An expression with the values of each field, so that the model need not parse it. */
export type Sample = {
  text: string;
  minute: Set<number>;
  hour: Set<number>;
  dayOfMonth: Set<number>;
  month: Set<number>;
  dayOfWeek: Set<number>;
  either: boolean;
};

type FieldSample = { text: string; values: number[] };

const steps = (from: number, to: number, step = 1) =>
  Array.from({ length: Math.floor((to - from) / step) + 1 }, (_, i) => from + i * step);

const listItem = (min: number, max: number): fc.Arbitrary<FieldSample> =>
  fc.oneof(
    fc.integer({ min, max }).map((value) => ({ text: String(value), values: [value] })),
    fc.tuple(fc.integer({ min, max }), fc.integer({ min, max })).map(([a, b]) => ({
      text: `${Math.min(a, b)}-${Math.max(a, b)}`,
      values: steps(Math.min(a, b), Math.max(a, b)),
    })),
    fc
      .tuple(
        fc.integer({ min, max }),
        fc.integer({ min, max }),
        fc.integer({ min: 2, max: max - min }),
      )
      .map(([a, b, step]) => ({
        text: `${Math.min(a, b)}-${Math.max(a, b)}/${step}`,
        values: steps(Math.min(a, b), Math.max(a, b), step),
      })),
  );

const star = (min: number, max: number) => fc.constant({ text: '*', values: steps(min, max) });
const steppedStar = (min: number, max: number) =>
  fc
    .integer({ min: 2, max: max - min })
    .map((step) => ({ text: `*/${step}`, values: steps(min, max, step) }));
const list = (min: number, max: number) =>
  fc.array(listItem(min, max), { minLength: 1, maxLength: 3 }).map((parts) => ({
    text: parts.map(({ text }) => text).join(','),
    values: parts.flatMap(({ values }) => values),
  }));

const field = (min: number, max: number) =>
  fc.oneof(star(min, max), steppedStar(min, max), list(min, max));

/** Minute fields with few values, so that ten years have no millions of occurrences. */
const minute = fc
  .oneof(fc.integer({ min: 0, max: 59 }), fc.constantFrom(0, 30))
  .chain((one) =>
    fc.constantFrom(
      { text: String(one), values: [one] },
      { text: `${one},15`, values: [one, 15] },
      { text: '*/30', values: [0, 30] },
      { text: '7-59/26', values: [7, 33, 59] },
    ),
  );

/** Random expressions of five fields. */
export const cronSample: fc.Arbitrary<Sample> = fc
  .tuple(
    minute,
    field(0, 23),
    field(1, 31),
    field(1, 12),
    fc.oneof(star(0, 6), steppedStar(0, 6), list(0, 7)),
  )
  .map((fields) => {
    const [minutes, hours, dayOfMonth, months, dayOfWeek] = fields;
    return {
      text: fields.map(({ text }) => text).join(' '),
      minute: new Set(minutes.values),
      hour: new Set(hours.values),
      dayOfMonth: new Set(dayOfMonth.values),
      month: new Set(months.values),
      dayOfWeek: new Set(dayOfWeek.values.map((day) => day % 7)),
      either: !dayOfMonth.text.startsWith('*') && !dayOfWeek.text.startsWith('*'),
    };
  });

const HALF_HOUR_MS = 1_800_000;
const HALF_HOURS_OF_A_DAY = 48;

/**
 * The UTC offset at each half hour, in minutes, as `Intl.DateTimeFormat` shows it. No clock is changed twice in a day: the
 * offset of its first half hour is that of all when the next day has it too.
 */
export function offsetsOf(timeZone: string, from: Date, until: Date): Int16Array {
  const clock = new Intl.DateTimeFormat('en-GB', {
    timeZone,
    year: 'numeric',
    month: '2-digit',
    day: '2-digit',
    hour: '2-digit',
    minute: '2-digit',
    hourCycle: 'h23',
  });
  const offsets = new Int16Array((until.getTime() - from.getTime()) / HALF_HOUR_MS);
  const offsetAt = (i: number): number => {
    const ms = from.getTime() + i * HALF_HOUR_MS;
    // 25/10/2026, 01:30
    const text = clock.format(ms);
    const part = (start: number, length: number) => Number(text.slice(start, start + length));
    return (
      (Date.UTC(part(6, 4), part(3, 2) - 1, part(0, 2), part(12, 2), part(15, 2)) - ms) / 60_000
    );
  };
  for (let day = 0; day < offsets.length; day += HALF_HOURS_OF_A_DAY) {
    const next = day + HALF_HOURS_OF_A_DAY;
    const offset = offsetAt(day);
    if (offset === offsetAt(next)) offsets.fill(offset, day, next);
    else for (let i = day; i < next; i++) offsets[i] = offsetAt(i);
  }
  return offsets;
}

const toFlags = (values: ReadonlySet<number>, size: number) =>
  Uint8Array.from({ length: size }, (_, value) => (values.has(value) ? 1 : 0));

/** Checks every minute: does the wall clock show a matching time? Returns epoch milliseconds. */
export function bruteForceOccurrences(sample: Sample, offsets: Int16Array, from: Date): number[] {
  const found: number[] = [];
  // This loop has five million rounds.
  const { floor } = Math;
  const minuteMatches = toFlags(sample.minute, 60);
  const hourMatches = toFlags(sample.hour, 24);
  let dayNumber = -1;
  let dayMatches = false;
  const isDay = (date: Date): boolean => {
    const [inMonth, inWeek] = [
      sample.dayOfMonth.has(date.getUTCDate()),
      sample.dayOfWeek.has(date.getUTCDay()),
    ];
    return (
      sample.month.has(date.getUTCMonth() + 1) &&
      (sample.either ? inMonth || inWeek : inMonth && inWeek)
    );
  };
  const first = from.getTime() / 60_000;
  for (let i = 0; i < offsets.length * 30; i++) {
    const wall = first + i + (offsets[floor(i / 30)] ?? 0);
    if (minuteMatches[wall % 60] !== 1 || hourMatches[floor(wall / 60) % 24] !== 1) continue;
    const day = floor(wall / 1_440);
    if (day !== dayNumber) {
      dayNumber = day;
      dayMatches = isDay(new Date(day * 86_400_000));
    }
    if (dayMatches) found.push((first + i) * 60_000);
  }
  return found;
}
