import { describe, expect, it, jest } from '@jest/globals';
import fc from 'fast-check';
import { Temporal } from 'temporal-polyfill';
import { matchesCron, parseCron, wallTimes, type Cron } from '../../../domain/schedules/cron.ts';
import {
  occurrences,
  isDue,
  listOccurrences,
  nextOccurrence,
  upcomingOccurrences,
  type Timing,
} from '../../../domain/schedules/occurrences.ts';
import { canonicalTimeZone } from '../../../domain/schedules/timeZone.ts';
import {
  cronSample,
  offsetsOf,
  bruteForceOccurrences,
  type Sample,
} from '../../support/cronModel.ts';
import { propertyRuns } from '../../support/effort.ts';

const parse = (text: string): Cron => {
  const parsed = parseCron(text);
  if ('errors' in parsed) throw new Error(JSON.stringify(parsed.errors));
  return parsed.cron;
};
const errorsOf = (text: string) => {
  const parsed = parseCron(text);
  return 'errors' in parsed ? parsed.errors : [];
};
const timing = (text: string, timezone = 'UTC', bounds: Partial<Timing> = {}): Timing => ({
  cron: parse(text),
  timezone,
  startAt: null,
  endAt: null,
  ...bounds,
});
const iso = (times: Iterable<Date>) => [...times].map((time) => time.toISOString());
const at = (text: string) => new Date(text);

describe('a cron expression', () => {
  it.each([
    ['5 4 * * *', { minute: [5], hour: [4] }],
    [
      '*/20 0-2,22 1-31/10 jan,DEC mon-wed',
      {
        minute: [0, 20, 40],
        hour: [0, 1, 2, 22],
        dayOfMonth: [1, 11, 21, 31],
        month: [1, 12],
        dayOfWeek: [1, 2, 3],
      },
    ],
    ['50/5 * * * *', { minute: [50, 55] }],
    ['0 0 * * 7', { dayOfWeek: [0] }],
    ['0 0 * * 5-7', { dayOfWeek: [0, 5, 6] }],
    ['0 0 * * sat-sun', { dayOfWeek: [0, 6] }],
    ['0 0 * * */2', { dayOfWeek: [0, 2, 4, 6] }],
    ['0 0 * * 7-2', { dayOfWeek: [0, 1, 2] }],
    ['0 0 * * 7-7,6-0', { dayOfWeek: [0, 6] }],
    ['  0\t0  1 1 *  ', { month: [1], dayOfMonth: [1] }],
    ['@Hourly', { minute: [0], hour: Array.from({ length: 24 }, (_, i) => i) }],
    ['@weekly', { minute: [0], hour: [0], dayOfWeek: [0] }],
  ])('%s is parsed', (text, expected) => expect(parse(text)).toMatchObject(expected));

  it('is rejected with every invalid field, its value and the allowed values', () => {
    const errors = errorsOf('60 -1 32 foo 8');
    expect(errors.map(({ field }) => field)).toEqual([
      'minute',
      'hour',
      'dayOfMonth',
      'month',
      'dayOfWeek',
    ]);
    expect(errors[0]?.message).toBe('has 60 in "60"; a minute is 0 to 59');
    expect(errors[3]?.message).toContain('jan, feb');
  });

  it.each([
    ['* * * *', 'expression', 'has 4'],
    ['* * * * * *', 'expression', 'has 6'],
    ['', 'expression', 'has 0'],
    ['@reboot', 'expression', '@hourly'],
    ['@every 5m', 'expression', '@hourly'],
    ['CRON_TZ=UTC 0 0 * * *', 'expression', 'time zone'],
    ['5-1 * * * *', 'minute', 'ends before it starts'],
    ['0 0 * * sat-mon', 'dayOfWeek', 'as in 6,0-1'],
    ['*/0 * * * *', 'minute', '1 to 59'],
    ['*/60 * * * *', 'minute', '1 to 59'],
    ['1,,2 * * * *', 'minute', 'empty part'],
    ['1/2/3 * * * *', 'minute', 'two steps'],
    ['1-2-3 * * * *', 'minute', 'not a range'],
    ['* * L * *', 'dayOfMonth', '"L"'],
    ['* * ? * *', 'dayOfMonth', '"?"'],
    ['* * * * mon#2', 'dayOfWeek', 'mon#2'],
    ['1.5 * * * *', 'minute', '"1.5"'],
    ['0 0 30 2 *', 'dayOfMonth', 'FEB'],
    ['0 0 31 apr,jun *', 'dayOfMonth', 'APR, JUN'],
    [`${'1,'.repeat(200)}1 * * * *`, 'expression', '255'],
  ])('%s is rejected for %s', (text, field, words) => {
    const errors = errorsOf(text);
    expect(errors).toHaveLength(1);
    expect(errors[0]).toMatchObject({ field, message: expect.stringContaining(words) });
  });

  it('matches either day field if both are restricted, else both, as in Vixie cron', () => {
    const days = (text: string) =>
      iso(occurrences(timing(text), at('2026-11-30T23:59:00Z'), at('2026-12-15T00:00:00Z'))).map(
        (day) => Number(day.slice(8, 10)),
      );
    expect(days('0 0 13 * fri')).toEqual([4, 11, 13]);
    expect(days('0 0 13 * *')).toEqual([13]);
    expect(days('0 0 * * fri')).toEqual([4, 11]);
    expect(days('0 0 */2 * fri')).toEqual([11]);
    expect(days('0 0 1-31 * fri')).toHaveLength(15);
  });

  it('never makes the parser throw', () => {
    fc.assert(
      fc.property(
        fc.string({
          unit: fc.constantFrom(...('0123456789*/,-@ abcJANmonL#?\t'.match(/./gs) ?? [])),
          maxLength: 30,
        }),
        (text) => {
          const parsed = parseCron(text);
          expect('cron' in parsed || parsed.errors.length > 0).toBe(true);
        },
      ),
      { numRuns: propertyRuns(300) },
    );
  });
});

describe('daylight saving', () => {
  it('marks a local time that does not exist as skipped', () => {
    const found = upcomingOccurrences(
      timing('30 1 * * *', 'Europe/London'),
      at('2026-03-28T12:00:00Z'),
      2,
    );
    expect(found.map(({ at: time, daylight }) => [time?.toISOString() ?? null, daylight])).toEqual([
      [null, 'skipped'],
      ['2026-03-30T00:30:00.000Z', null],
      ['2026-03-31T00:30:00.000Z', null],
    ]);
  });

  it('yields two occurrences in a repeated hour', () => {
    const found = upcomingOccurrences(
      timing('30 1 * * *', 'America/New_York'),
      at('2026-10-31T12:00:00Z'),
      3,
    );
    expect(found.map(({ at: time, daylight }) => [time?.toISOString(), daylight])).toEqual([
      ['2026-11-01T05:30:00.000Z', 'first'],
      ['2026-11-01T06:30:00.000Z', 'second'],
      ['2026-11-02T06:30:00.000Z', null],
    ]);
  });

  const BERLIN = timing('* * * * *', 'Europe/Berlin');
  const minutesOf = (from: string, minutes: number) =>
    Array.from({ length: minutes }, (_, i) => new Date(at(from).getTime() + i * 60_000));
  const flagged = (from: string, minutes: number, daylight: string | null) =>
    minutesOf(from, minutes).map((time) => [time.toISOString(), daylight]);

  it('marks each minute of the two hours in which the clock shows the same', () => {
    const found = upcomingOccurrences(BERLIN, at('2026-10-24T23:58:00Z'), 122);
    expect(found.map(({ at: time, daylight }) => [time?.toISOString(), daylight])).toEqual([
      ...flagged('2026-10-24T23:59:00Z', 1, null),
      ...flagged('2026-10-25T00:00:00Z', 60, 'first'),
      ...flagged('2026-10-25T01:00:00Z', 60, 'second'),
      ...flagged('2026-10-25T02:00:00Z', 1, null),
    ]);
  });

  it('lists each minute that is skipped, and none of those beside it', () => {
    const found = upcomingOccurrences(BERLIN, at('2026-03-29T00:58:00Z'), 2);
    const walls = (times: Date[]) => times.map((time) => time.getTime());
    expect(found.map(({ at: time, wallMs }) => [time?.toISOString() ?? null, wallMs])).toEqual([
      ['2026-03-29T00:59:00.000Z', at('2026-03-29T01:59:00Z').getTime()],
      // At most two for each of the occurrences that were asked for.
      ...walls(minutesOf('2026-03-29T02:00:00Z', 3)).map((wallMs) => [null, wallMs]),
    ]);
    const all = upcomingOccurrences(BERLIN, at('2026-03-29T00:58:00Z'), 62);
    expect(
      all.filter(({ daylight }) => daylight === 'skipped').map(({ wallMs }) => wallMs),
    ).toEqual(walls(minutesOf('2026-03-29T02:00:00Z', 60)));
    expect(all).toHaveLength(122);
  });

  it('has its bounds in it', () => {
    const bounds = { startAt: at('2026-05-01T10:00:00Z'), endAt: at('2026-05-01T10:02:00Z') };
    const bounded = timing('* * * * *', 'UTC', bounds);
    const times = minutesOf('2026-05-01T09:59:00Z', 5);
    expect(times.map((time) => isDue(bounded, time))).toEqual([false, true, true, true, false]);
    expect([...occurrences(bounded, at('2026-05-01T00:00:00Z'))]).toEqual(times.slice(1, 4));
  });

  it('changes the clock by half an hour on Lord Howe', () => {
    expect(
      iso(
        occurrences(
          timing('45 1 * * *', 'Australia/Lord_Howe'),
          at('2026-04-03T15:00:00Z'),
          at('2026-04-05T15:00:00Z'),
        ),
      ),
    ).toEqual(['2026-04-04T14:45:00.000Z', '2026-04-04T15:15:00.000Z']);
    expect(
      upcomingOccurrences(
        timing('15 2 * * *', 'Australia/Lord_Howe'),
        at('2026-10-03T00:00:00Z'),
        1,
      )[0],
    ).toMatchObject({ at: null, daylight: 'skipped' });
  });

  it('omits nothing if a day starts at one, and skips a day that does not exist', () => {
    expect(
      iso(
        occurrences(
          timing('0 12 * * fri', 'Africa/Cairo'),
          at('2026-04-23T22:30:00Z'),
          at('2026-04-24T23:00:00Z'),
        ),
      ),
    ).toEqual(['2026-04-24T09:00:00.000Z']);
    expect(
      iso(
        occurrences(
          timing('0 12 30 12 *', 'Pacific/Apia'),
          at('2011-12-01T00:00:00Z'),
          at('2012-12-01T00:00:00Z'),
        ),
      ),
    ).toEqual([]);
  });
});

describe('occurrences', () => {
  const FROM = at('2026-01-01T00:00:00Z');
  const UNTIL = at('2036-01-01T00:00:00Z');

  it.each(['Europe/London', 'America/New_York', 'Australia/Lord_Howe', 'Asia/Kathmandu', 'UTC'])(
    'equal a check of every minute of ten years in %s',
    (zone) => {
      const offsets = offsetsOf(zone, FROM, UNTIL);
      fc.assert(
        fc.property(cronSample, (sample: Sample) => {
          const parsed = parseCron(sample.text);
          const expected = bruteForceOccurrences(sample, offsets, FROM);
          // An expression without occurrences is rejected.
          if ('errors' in parsed)
            return expect({ text: sample.text, expected }).toEqual({
              text: sample.text,
              expected: [],
            });
          const found = [
            ...occurrences(
              { cron: parsed.cron, timezone: zone, startAt: null, endAt: null },
              new Date(FROM.getTime() - 1),
              new Date(UNTIL.getTime() - 1),
            ),
          ].map((time) => time.getTime());
          expect(found.length).toBe(expected.length);
          expect(found.findIndex((time, i) => time !== expected[i])).toBe(-1);
        }),
        { numRuns: propertyRuns(2) },
      );
    },
  );

  it('are due, and no minute between them is', () => {
    fc.assert(
      fc.property(
        cronSample,
        fc.constantFrom('Europe/London', 'Australia/Lord_Howe', 'Africa/Casablanca'),
        fc.integer({ min: 0, max: 5_000_000 }),
        ({ text }, timezone, minute) => {
          const parsed = parseCron(text);
          if ('errors' in parsed) return;
          const sampleTiming = { cron: parsed.cron, timezone, startAt: null, endAt: null };
          const from = new Date(FROM.getTime() + minute * 60_000);
          const next = nextOccurrence(sampleTiming, from);
          if (!next) return;
          expect(isDue(sampleTiming, next)).toBe(true);
          expect(isDue(sampleTiming, new Date(next.getTime() + 1))).toBe(false);
          const untilMs = Math.min(next.getTime(), from.getTime() + 86_400_000);
          const due: number[] = [];
          for (let ms = from.getTime() + 60_000; ms < untilMs; ms += 60_000)
            if (isDue(sampleTiming, new Date(ms))) due.push(ms);
          expect(due).toEqual([]);
        },
      ),
      { numRuns: propertyRuns(30) },
    );
  });

  it('are inside startAt and endAt, both inclusive', () => {
    const bounded = timing('0 * * * *', 'UTC', {
      startAt: at('2026-01-01T02:00:00Z'),
      endAt: at('2026-01-01T04:00:00Z'),
    });
    expect(iso(occurrences(bounded, FROM))).toEqual([
      '2026-01-01T02:00:00.000Z',
      '2026-01-01T03:00:00.000Z',
      '2026-01-01T04:00:00.000Z',
    ]);
    expect([
      isDue(bounded, at('2026-01-01T01:00:00Z')),
      isDue(bounded, at('2026-01-01T05:00:00Z')),
      isDue(bounded, at('2026-01-01T03:00:00Z')),
    ]).toEqual([false, false, true]);
    expect(nextOccurrence(bounded, at('2026-01-01T04:00:00Z'))).toBeNull();
  });

  it('on 29 February are eight years apart around 2100', () => {
    expect(
      iso(
        occurrences(timing('0 0 29 2 *'), at('2095-01-01T00:00:00Z'), at('2105-01-01T00:00:00Z')),
      ),
    ).toEqual(['2096-02-29T00:00:00.000Z', '2104-02-29T00:00:00.000Z']);
  });

  it('are found decades ahead', () => {
    expect(upcomingOccurrences(timing('0 0 1 1 *'), at('2026-06-01T00:00:00Z'), 100)).toHaveLength(
      100,
    );
    expect(
      listOccurrences(
        timing('0 0 1 1 *'),
        at('1972-06-01T00:00:00Z'),
        at('2072-06-01T00:00:00Z'),
        1_000,
      ),
    ).toHaveLength(100);
    expect(
      nextOccurrence(
        timing('0 0 1 1 *', 'UTC', { startAt: at('2150-01-01T00:00:01Z') }),
        at('2026-06-01T00:00:00Z'),
      ),
    ).toEqual(at('2151-01-01T00:00:00Z'));
  });

  it('end after 400 years', () => {
    const rare = timing('0 0 29 2 */7', 'Europe/London');
    const found = upcomingOccurrences(rare, at('2199-01-01T00:00:00Z'), 100);
    expect(found).toHaveLength(13);
    expect(found.at(-1)?.at).toEqual(at('2584-02-29T00:00:00Z'));
    const yearly = timing('30 1 1 1 *', 'Europe/London', { startAt: at('2199-01-01T00:00:00Z') });
    expect(upcomingOccurrences(yearly, at('1972-01-01T00:00:00Z'), 100)).toHaveLength(100);
  });

  it('that are rare cost as few searches for clock changes as others, and none again', () => {
    const search = jest.spyOn(Temporal.ZonedDateTime.prototype, 'getTimeZoneTransition');
    const searchesOf = (text: string, timezone: string) => {
      search.mockClear();
      const found = upcomingOccurrences(timing(text, timezone), at('2026-11-27T00:00:00Z'), 5);
      expect(found).toHaveLength(5);
      return search.mock.calls.length;
    };
    try {
      expect(searchesOf('0 0 29 2 */7', 'Europe/Zagreb')).toBeLessThanOrEqual(10);
      expect(searchesOf('0 0 29 2 */7', 'Europe/Zagreb')).toBe(0);
      expect(searchesOf('0 0 * * *', 'America/Recife')).toBe(1);
    } finally {
      search.mockRestore();
    }
  });

  it('match the wall clock to the minute', () => {
    expect(matchesCron(parse('* * * * *'), 60_000)).toBe(true);
    expect(matchesCron(parse('* * * * *'), 61_000)).toBe(false);
    expect([...wallTimes(parse('0 0 1 3 *'), 0, Date.UTC(1971, 0, 1))]).toEqual([
      Date.UTC(1970, 2, 1),
    ]);
  });
});

describe('a time zone', () => {
  it('is spelled as in the tz database', () => {
    expect([
      canonicalTimeZone('europe/london'),
      canonicalTimeZone('UTC'),
      canonicalTimeZone('America/Argentina/Buenos_Aires'),
    ]).toEqual(['Europe/London', 'UTC', 'America/Argentina/Buenos_Aires']);
  });

  it.each([
    '',
    'Mars/Olympus',
    '+03:00',
    '-05',
    'GMT+3',
    'Europe/London[u-ca=iso8601]',
    '../etc/passwd',
    'Europe/',
    'SystemV/PST8',
    'US/Pacific-New',
  ])('is not %j', (name) => expect(canonicalTimeZone(name)).toBeUndefined());
});
