import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import {
  MAX_POSITION,
  queuePosition,
  queueRefusal,
  queueRetryAfter,
  type QueueState,
} from '../../../domain/jobs/queue.ts';

const AT = new Date('2026-11-01T00:00:00Z');
const state = (queued: Record<string, number>): QueueState =>
  new Map(Object.entries(queued).map(([id, count]) => [id, { queued: count, oldestAt: AT }]));
const limits = { tenant: 60, all: 100 };

describe('a job is refused', () => {
  test.each([
    ['by the limit of its tenant', { red: 60 }, 'red', 'tenant'],
    ['not below it', { red: 59 }, 'red', undefined],
    ['not because of the backlog of another tenant', { red: 100 }, 'blue', undefined],
    ['by the limit of all, if its tenant has its share', { red: 50, blue: 50 }, 'blue', 'all'],
    ['not if its tenant has less', { red: 51, blue: 49 }, 'blue', undefined],
    ['by the limit of all only, for the platform', { platform: 99 }, 'platform', undefined],
    ['by the limit of all, for the platform too', { platform: 100 }, 'platform', 'all'],
  ] as const)('%s', (_title, queued, tenantId, refusal) => {
    expect(queueRefusal(state(queued), tenantId, limits)).toBe(refusal);
  });

  test('never if its tenant has no queued job; and the backlog of all is bounded', () => {
    fc.assert(
      fc.property(fc.array(fc.integer({ min: 0, max: 7 }), { maxLength: 600 }), (requests) => {
        const queued: Record<string, number> = {};
        for (const n of requests) {
          const tenantId = `t${n}`;
          const refusal = queueRefusal(state(queued), tenantId, limits);
          if (!queued[tenantId]) expect(refusal).toBeUndefined();
          if (!refusal) queued[tenantId] = (queued[tenantId] ?? 0) + 1;
        }
        const total = Object.values(queued).reduce((sum, count) => sum + count, 0);
        // Each tenant that comes after the limit was reached may add its share.
        expect(total).toBeLessThanOrEqual(limits.all * 2.72);
      }),
    );
  });
});

test('positions are counted from 1 up to a limit, with the age of the oldest job', () => {
  expect(queuePosition(0, AT, AT.getTime() + 2_900)).toEqual({ position: 1, oldestSeconds: 2 });
  expect(queuePosition(5_000, AT, AT.getTime() - 5)).toEqual({
    position: MAX_POSITION,
    oldestSeconds: 0,
  });
});

test('Retry-After grows with the age of the oldest job', () => {
  const after = (seconds: number) => queueRetryAfter(AT, AT.getTime() + seconds * 1_000);
  expect([0, 20, 95, 3_600].map(after)).toEqual([2, 2, 10, 60]);
  expect(queueRetryAfter(undefined, 0)).toBe(2);
});
