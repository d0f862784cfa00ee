import { describe, expect, it } from '@jest/globals';
import { fromLocalInput, toLocalInput } from '../../../ui/parts/localInput.ts';
import { changeOf, newDraft, requestOf, upToLastRun } from '../../../ui/areas/schedules/draft.ts';
import {
  countOutcomes,
  dayText,
  localTimeText,
  runStatus,
  weeksOf,
} from '../../../ui/areas/schedules/scheduleText.ts';

const fired = { outcome: 'fired', reason: null } as const;

describe('the outcomes of a day', () => {
  it('are counted by what people need to know, the worst first', () => {
    const runs = [
      { ...fired, jobStatus: 'succeeded', count: 20 },
      { ...fired, jobStatus: 'failed', count: 1 },
      { ...fired, jobStatus: null, count: 2 },
      { ...fired, jobStatus: 'running', count: 1 },
      { outcome: 'failed', reason: 'quota_exceeded', jobStatus: null, count: 2 },
      { outcome: 'skipped', reason: 'missed', jobStatus: null, count: 1 },
      { outcome: 'skipped', reason: 'overlap', jobStatus: null, count: 4 },
    ] as const;
    expect(countOutcomes(runs).map(({ name, count }) => [name, count])).toEqual([
      ['failed', 3],
      ['missed', 1],
      ['skipped', 4],
      ['running', 1],
      ['succeeded', 20],
      ['purged', 2],
    ]);
    expect(dayText('2026-11-21', runs)).toBe(
      'Sat 21 Nov 2026: 3 failed, 1 missed, 4 skipped, 1 not ended, 20 succeeded, 2 ran, job purged',
    );
    expect(dayText('2026-11-21', [])).toBe('Sat 21 Nov 2026: no runs');
  });

  it('of a run is the status of its job, or why there is none', () => {
    expect(runStatus({ ...fired, jobStatus: 'cancelled' })).toBe('cancelled');
    expect(runStatus({ ...fired, jobStatus: null })).toBe('fired');
    expect(runStatus({ outcome: 'skipped', reason: 'missed', jobStatus: null })).toBe('missed');
    expect(runStatus({ outcome: 'skipped', reason: 'paused', jobStatus: null })).toBe('skipped');
  });
});

describe('a calendar', () => {
  it('has weeks from Monday to Sunday', () => {
    const days = Array.from({ length: 10 }, (_, n) => ({
      date: new Date(Date.UTC(2026, 10, 12 + n)).toISOString().slice(0, 10),
    }));
    const weeks = weeksOf(days).map((week) => week.map((day) => day?.date.slice(8)));
    expect(weeks).toEqual([
      [undefined, undefined, undefined, '12', '13', '14', '15'],
      ['16', '17', '18', '19', '20', '21', undefined],
    ]);
    expect(weeksOf([])).toEqual([]);
  });

  it('names the year of a time if that is another one', () => {
    const now = new Date('2026-11-21T00:00:00Z');
    expect(localTimeText('2026-11-30T02:30:00', now)).toBe('Mon 30 Nov 02:30');
    expect(localTimeText('2027-03-28T01:30:00', now)).toBe('Sun 28 Mar 2027 01:30');
  });
});

describe('the form of a schedule', () => {
  it('sends numbers that were emptied as their defaults', () => {
    const draft = { ...newDraft('UTC'), name: ' nightly ', cronExpression: ' @daily ' };
    expect(
      requestOf({ ...draft, catchupWindowSeconds: '', jitterSeconds: '', maxRuns: '' }),
    ).toMatchObject({
      name: 'nightly',
      cronExpression: '@daily',
      catchupWindowSeconds: 3_600,
      jitterSeconds: 0,
      maxRuns: null,
    });
  });

  it('removes the overrides of the retry policy that were emptied', () => {
    const started = { ...newDraft('UTC'), retryPolicy: { maxAttempts: 5, jitter: 0.1 } };
    const draft = { ...started, retryPolicy: { maxAttempts: 3 } };
    expect(changeOf(draft, started).retryPolicy).toEqual({ maxAttempts: 3, jitter: null });
    expect(changeOf(started, started).retryPolicy).toEqual(started.retryPolicy);
  });

  it('keeps a time as it is typed and shown', () => {
    const at = '2026-11-21T12:34:00.000Z';
    for (const utc of [false, true]) {
      expect(fromLocalInput(toLocalInput(at, utc), utc)).toBe(at);
      expect(toLocalInput(null, utc)).toBe('');
      expect(fromLocalInput('', utc)).toBeNull();
      expect(fromLocalInput('2026-13-01T00:00', utc)).toBeNull();
    }
    expect(toLocalInput(at, true)).toBe('2026-11-21T12:34');
    expect(toLocalInput(at, true, true)).toBe('2026-11-21T12:34:00');
    expect(fromLocalInput('2026-11-21T12:34', true)).toBe(at);
  });
});

describe('the next times of a form', () => {
  const times = (...at: (string | null)[]) => at.map((each) => ({ at: each }));
  const runs = times('1', null, '2', '3');

  it('end with the last run that the number of runs allows', () => {
    expect(upToLastRun(runs, 1, 0)).toEqual({ runs: times('1'), ends: true });
    expect(upToLastRun(runs, 5, 3)).toEqual({ runs: times('1', null, '2'), ends: true });
    expect(upToLastRun(runs, 3, 3)).toEqual({ runs: [], ends: true });
  });

  it('are all if there are more runs, or if their number has no limit', () => {
    expect(upToLastRun(runs, 4, 0)).toEqual({ runs, ends: false });
    expect(upToLastRun(runs, '', 20)).toEqual({ runs, ends: false });
  });
});
