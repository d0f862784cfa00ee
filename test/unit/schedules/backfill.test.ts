import { describe, expect, it } from '@jest/globals';
import { backfillState } from '../../../domain/schedules/backfill.ts';
import { lastDays } from '../../../domain/schedules/timeZone.ts';

const dueAt = new Date('2026-11-21T12:00:00Z');
const known = {
  nextDueAt: null,
  scheduled: undefined,
  backfilled: undefined,
  purgedUntil: null,
};

describe('an occurrence of a backfill', () => {
  const skipped = { outcome: 'skipped' } as const;
  const fired = { outcome: 'fired' } as const;
  const later = new Date('2026-11-21T13:00:00Z');

  it.each([
    ['toRun', {}],
    ['toRun', { scheduled: skipped }],
    ['toRun', { nextDueAt: later }],
    ['toRun', { nextDueAt: dueAt, scheduled: skipped }],
    ['pending', { nextDueAt: dueAt }],
    ['hasRun', { scheduled: fired }],
    ['hasRun', { scheduled: { outcome: 'buffered' } as const }],
    ['hasRun', { scheduled: skipped, backfilled: { ...fired, held: false } }],
    ['hasRun', { scheduled: skipped, backfilled: { ...fired, held: true } }],
    ['toRun', { backfilled: { ...skipped, held: false } }],
    ['held', { backfilled: { ...skipped, held: true } }],
    ['hasRun', { scheduled: fired, purgedUntil: dueAt }],
    ['purged', { purgedUntil: dueAt }],
    ['purged', { scheduled: skipped, purgedUntil: dueAt }],
    ['toRun', { backfilled: { ...skipped, held: false }, purgedUntil: later }],
    ['held', { backfilled: { ...skipped, held: true }, purgedUntil: later }],
    ['toRun', { purgedUntil: new Date('2026-11-21T11:00:00Z') }],
  ])('is %s with %j', (state, given) => {
    expect(backfillState(dueAt, { ...known, ...given })).toBe(state);
  });
});

describe('the last days of a time zone', () => {
  it('start at its midnight, also where clocks change', () => {
    const days = lastDays('Europe/London', new Date('2026-03-30T12:00:00Z'), 3);
    expect(days.map(({ date, start }) => [date, start.toISOString()])).toEqual([
      ['2026-03-28', '2026-03-28T00:00:00.000Z'],
      ['2026-03-29', '2026-03-29T00:00:00.000Z'],
      ['2026-03-30', '2026-03-29T23:00:00.000Z'],
      ['2026-03-31', '2026-03-30T23:00:00.000Z'],
    ]);
  });

  it('end after 25 hours where clocks are set back, also today', () => {
    const late = new Date('2026-10-25T22:30:00Z');
    expect(lastDays('Europe/Berlin', late, 1).map(({ start }) => start.toISOString())).toEqual([
      '2026-10-24T22:00:00.000Z',
      '2026-10-25T23:00:00.000Z',
    ]);
  });

  it('are those of the zone, not of UTC', () => {
    const [today] = lastDays('Asia/Tokyo', new Date('2026-11-21T16:00:00Z'), 1);
    expect(today).toEqual({ date: '2026-11-22', start: new Date('2026-11-21T15:00:00Z') });
  });
});
