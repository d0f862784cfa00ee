import { expect, test } from '@jest/globals';
import {
  delayWithinSecondMs,
  isInFuture,
  isCaughtUp,
  isMissed,
  maxDelaySeconds,
  nextOccurrenceOf,
  spreadSecondsOf,
  stateOf,
} from '../../../domain/schedules/schedules.ts';

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
  'with a window of %i s and %i s of jitter, an occurrence is missed %i s later: %s',
  (catchupWindowSeconds, jitterSeconds, late, missed) => {
    expect(
      isMissed({ catchupWindowSeconds, jitterSeconds, spreadSeconds: 0 }, due, after(late)),
    ).toBe(missed);
  },
);

test.each([
  [0, 10, false],
  [0, 11, true],
  [60, 70, false],
  [60, 71, true],
])(
  'with %i s of jitter, a run decided %i s later counts as caught up: %s',
  (jitterSeconds, late, caughtUp) => {
    expect(isCaughtUp({ jitterSeconds, spreadSeconds: 0 }, due, after(late))).toBe(caughtUp);
  },
);

test.each([
  [0, 0],
  [9, 0],
  [10, 1],
  [11, 2],
  [59, 50],
  [499, 50],
])('a new schedule of a tenant that owns %i is spread over %i s', (owned, seconds) =>
  expect(spreadSecondsOf(owned)).toBe(seconds),
);

test('a run is not late while its spread may delay it', () => {
  const spread = { catchupWindowSeconds: 60, jitterSeconds: 5, spreadSeconds: 50 };
  expect(
    [60, 61]
      .map((late) => isCaughtUp(spread, due, after(late)))
      .concat([110, 111].map((late) => isMissed(spread, due, after(late)))),
  ).toEqual([false, true, false, true]);
  expect(maxDelaySeconds({ jitterSeconds: 70, spreadSeconds: 50 })).toBe(70);
});

test('a scheduled time may be 5 s ahead of the clock', () =>
  expect([
    isInFuture(due, after(-5)),
    isInFuture(due, after(-6)),
    isInFuture(due, after(60)),
  ]).toEqual([false, true, false]));

test('a schedule has no next occurrence after its last run', () => {
  expect(nextOccurrenceOf({ ...daily, maxRuns: 2, runCount: 1 }, due)).toEqual(
    new Date('2026-11-22T00:00:00Z'),
  );
  expect(nextOccurrenceOf({ ...daily, maxRuns: 2, runCount: 1 }, due, 2)).toBeNull();
  expect(nextOccurrenceOf({ ...daily, endAt: after(60) }, due)).toBeNull();
});

test('a schedule is active, paused or ended', () => {
  expect([
    stateOf({ enabled: true, nextDueAt: due }),
    stateOf({ enabled: false, nextDueAt: due }),
    stateOf({ enabled: true, nextDueAt: null }),
  ]).toEqual(['active', 'paused', 'ended']);
});

test('runs that may be delayed are spread within a second, and no others', () => {
  expect(delayWithinSecondMs({ jitterSeconds: 0, spreadSeconds: 0 }, 0.5)).toBe(0);
  for (const delays of [
    { jitterSeconds: 0, spreadSeconds: 1 },
    { jitterSeconds: 30, spreadSeconds: 0 },
  ]) {
    expect(delayWithinSecondMs(delays, 0.5)).toBeGreaterThan(0);
    expect(delayWithinSecondMs(delays, 1)).toBeLessThan(1_000);
  }
});
