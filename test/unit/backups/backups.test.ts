import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { kept, SECTIONS, sectionsAt, type Keep } from '../../../domain/backups.ts';

const at = (text: string) => ({ id: text, at: new Date(text) });
const ids = (keep: Keep, ...times: string[]) => [...kept(keep, times.map(at))].sort();

describe('what is kept of a series', () => {
  test('is everything without a rule, and the newest with any', () => {
    expect(ids({}, '2026-01-01T00:00:00Z', '2026-01-02T00:00:00Z')).toHaveLength(2);
    expect(ids({ daily: 1 }, '2026-01-01T00:00:00Z')).toHaveLength(1);
    expect(ids({ last: 1 }, '2026-01-01T00:00:00Z', '2026-01-02T00:00:00Z')).toEqual([
      '2026-01-02T00:00:00Z',
    ]);
  });

  test.each([
    [{ last: 2 }, ['2026-01-03T10:00:00Z', '2026-01-03T20:00:00Z']],
    [{ daily: 2 }, ['2026-01-02T20:00:00Z', '2026-01-03T20:00:00Z']],
    [{ weekly: 2 }, ['2025-12-28T10:00:00Z', '2026-01-03T20:00:00Z']],
    [{ monthly: 2 }, ['2025-12-31T10:00:00Z', '2026-01-03T20:00:00Z']],
    [
      { last: 1, daily: 1, monthly: 3 },
      ['2025-11-30T10:00:00Z', '2025-12-31T10:00:00Z', '2026-01-03T20:00:00Z'],
    ],
  ])(
    '%j: the last ones, and the last of each day, week from Monday, and month',
    (keep, expected) => {
      expect(
        ids(
          keep,
          '2025-11-30T10:00:00Z',
          '2025-12-28T10:00:00Z',
          '2025-12-31T10:00:00Z',
          '2026-01-02T10:00:00Z',
          '2026-01-02T20:00:00Z',
          '2026-01-03T10:00:00Z',
          '2026-01-03T20:00:00Z',
        ),
      ).toEqual(expected);
    },
  );

  test('agrees with a plain reading of the rules, and never leaves none', () => {
    const time = fc.date({
      min: new Date('2024-01-01T00:00:00Z'),
      max: new Date('2026-12-31T00:00:00Z'),
      noInvalidDate: true,
    });
    const count = fc.option(fc.integer({ min: 1, max: 6 }), { nil: undefined });
    fc.assert(
      fc.property(
        fc.uniqueArray(time, { minLength: 1, maxLength: 40, selector: (each) => each.getTime() }),
        fc.record({ last: count, daily: count, weekly: count, monthly: count }),
        (times, rule) => {
          const series = times.map((each, i) => ({ id: `b${i}`, at: each }));
          const stay = kept(rule as Keep, series);
          const newestFirst = [...series].sort((a, b) => b.at.getTime() - a.at.getTime());
          expect(stay.has(newestFirst[0]?.id ?? '')).toBe(true);
          if (Object.values(rule).every((each) => each === undefined))
            return expect(stay.size).toBe(series.length);
          const weekOf = (each: Date) => Math.floor((each.getTime() / 86_400_000 + 3) / 7);
          const expected = new Set([
            newestFirst[0]?.id,
            ...newestFirst.slice(0, rule.last ?? 0).map(({ id }) => id),
          ]);
          for (const [n, periodOf] of [
            [rule.daily, (d: Date) => Math.floor(d.getTime() / 86_400_000)],
            [rule.weekly, weekOf],
            [rule.monthly, (d: Date) => d.getUTCFullYear() * 12 + d.getUTCMonth()],
          ] as const) {
            const periods = [...new Set(newestFirst.map((each) => periodOf(each.at)))].slice(
              0,
              n ?? 0,
            );
            for (const period of periods)
              expected.add(newestFirst.find((each) => periodOf(each.at) === period)?.id);
          }
          expect([...stay].sort()).toEqual([...expected].sort());
        },
      ),
    );
  });
});

test("a tenant has sections of its own; access and the audit trail are the installation's", () => {
  expect(sectionsAt('platform')).toEqual([...SECTIONS]);
  expect(SECTIONS.filter((section) => !sectionsAt('acme').includes(section))).toEqual([
    'access',
    'audit',
  ]);
});
