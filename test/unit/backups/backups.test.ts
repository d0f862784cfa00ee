import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { SECTIONS, sectionsForTenant } from '../../../domain/backups/backups.ts';
import {
  retentionReasons,
  selectRetained,
  type RetentionPolicy,
} from '../../../domain/backups/retention.ts';

const at = (text: string) => ({ id: text, at: new Date(text), isRestorable: true });
const retainedIds = (retention: RetentionPolicy, ...times: string[]) =>
  [...selectRetained(retention, times.map(at))].sort();

describe('the retention policy of a series', () => {
  test('keeps all backups when it is empty, and always the newest', () => {
    expect(retainedIds({}, '2026-01-01T00:00:00Z', '2026-01-02T00:00:00Z')).toHaveLength(2);
    expect(retainedIds({ daily: 1 }, '2026-01-01T00:00:00Z')).toHaveLength(1);
    expect(retainedIds({ last: 1 }, '2026-01-01T00:00:00Z', '2026-01-02T00:00:00Z')).toEqual([
      '2026-01-02T00:00:00Z',
    ]);
  });

  test('says why it keeps each backup', () => {
    const times = ['2026-01-02T10:00:00Z', '2026-01-03T10:00:00Z', '2026-01-03T20:00:00Z'];
    expect(Object.fromEntries(retentionReasons({ last: 2, daily: 2 }, times.map(at)))).toEqual({
      '2026-01-03T20:00:00Z': ['last', 'daily'],
      '2026-01-03T10:00:00Z': ['last'],
      '2026-01-02T10:00:00Z': ['daily'],
    });
    expect([...retentionReasons({}, times.map(at)).values()]).toEqual([['all'], ['all'], ['all']]);
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
    '%j keeps the last ones and the last one of each day, week (from Monday) and month',
    (retention, expected) => {
      expect(
        retainedIds(
          retention,
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

  test('counts no archive that cannot be restored, and keeps it no shorter', () => {
    const times = ['2026-01-01', '2026-01-02', '2026-01-31', '2026-02-01'];
    const unrestorable = new Set(['2026-01-02', '2026-01-31']);
    const series = times.map((time) => ({ ...at(time), isRestorable: !unrestorable.has(time) }));
    const kept = (policy: RetentionPolicy) => Object.fromEntries(retentionReasons(policy, series));
    expect(kept({ last: 2 })).toEqual({
      '2026-02-01': ['last'],
      '2026-01-31': ['last'],
      '2026-01-01': ['last'],
    });
    expect(kept({ monthly: 2 })).toEqual({
      '2026-02-01': ['newest', 'monthly'],
      '2026-01-31': ['monthly'],
      '2026-01-01': ['monthly'],
    });
    const damaged = series.map((each) => ({ ...each, isRestorable: false }));
    expect([...retentionReasons({ last: 1 }, damaged).keys()]).toEqual(['2026-02-01']);
  });

  test('never keeps less for a damaged archive', () => {
    const count = fc.option(fc.integer({ min: 1, max: 4 }), { nil: undefined });
    fc.assert(
      fc.property(
        fc.uniqueArray(fc.integer({ min: 0, max: 400 }), { minLength: 1, maxLength: 20 }),
        fc.uniqueArray(fc.nat(19)),
        fc.record({ last: count, daily: count, weekly: count, monthly: count }),
        (days, damaged, rule) => {
          const series = days.map((day, i) => ({
            ...{ id: `b${i}`, at: new Date(day * 86_400_000) },
            isRestorable: !damaged.includes(i),
          }));
          const policy = rule as RetentionPolicy;
          const whole = selectRetained(
            policy,
            series.map((each) => ({ ...each, isRestorable: true })),
          );
          const readable = series.filter(({ isRestorable }) => isRestorable);
          const retained = selectRetained(policy, series);
          expect(retained).toEqual(new Set([...whole, ...selectRetained(policy, readable)]));
        },
      ),
    );
  });

  test('keeps the same backups as a naive implementation', () => {
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
          const series = times.map((each, i) => ({ id: `b${i}`, at: each, isRestorable: true }));
          const retained = selectRetained(rule as RetentionPolicy, series);
          const newestFirst = [...series].sort((a, b) => b.at.getTime() - a.at.getTime());
          expect(retained.has(newestFirst[0]?.id ?? '')).toBe(true);
          if (Object.values(rule).every((each) => each === undefined))
            return expect(retained.size).toBe(series.length);
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
          expect([...retained].sort()).toEqual([...expected].sort());
        },
      ),
    );
  });
});

test('backups of tenants contain all sections but access and audit', () => {
  expect(sectionsForTenant('platform')).toEqual([...SECTIONS]);
  expect(SECTIONS.filter((section) => !sectionsForTenant('acme').includes(section))).toEqual([
    'access',
    'audit',
  ]);
});
