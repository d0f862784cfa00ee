import { expect, test } from '@jest/globals';
import { isAhead, isCaughtUp, isMissed, nextDueOf, stateOf } from '../../../domain/schedules/schedules.ts';

const due = new Date('2026-11-21T12:00:00Z');
const after = (seconds: number) => new Date(due.getTime() + seconds * 1_000);
const daily = {
  cronExpression: '@daily',
  timezone: 'UTC',
  startAt: null,
  endAt: null,
  maxRuns: null,
  runCount: 0,
};

test.each([
  [60, 0, 60, false],
  [60, 0, 61, true],
  [60, 30, 90, false],
  [60, 30, 91, true],
])(
  'with a window of %i s and %i s of jitter, %i s later it is missed: %s',
  (catchupWindowSeconds, jitterSeconds, late, missed) => {
    expect(isMissed({ catchupWindowSeconds, jitterSeconds }, due, after(late))).toBe(missed);
  },
);

test.each([
  [0, 10, false],
  [0, 11, true],
  [60, 70, false],
  [60, 71, true],
])('with %i s of jitter, what fires %i s later was caught up: %s', (jitter, late, caughtUp) => {
  expect(isCaughtUp(jitter, due, after(late))).toBe(caughtUp);
});

test('a clock may be 5 s ahead', () =>
  expect([isAhead(due, after(-5)), isAhead(due, after(-6)), isAhead(due, after(60))]).toEqual([
    false,
    true,
    false,
  ]));

test('after its last run nothing is due', () => {
  expect(nextDueOf({ ...daily, maxRuns: 2, runCount: 1 }, due)).toEqual(
    new Date('2026-11-22T00:00:00Z'),
  );
  expect(nextDueOf({ ...daily, maxRuns: 2, runCount: 1 }, due, 2)).toBeNull();
  expect(nextDueOf({ ...daily, endAt: after(60) }, due)).toBeNull();
});

test('a schedule is active, paused or ended', () => {
  expect([
    stateOf({ enabled: true, nextDueAt: due }),
    stateOf({ enabled: false, nextDueAt: due }),
    stateOf({ enabled: true, nextDueAt: null }),
  ]).toEqual(['active', 'paused', 'ended']);
});
