import { describe, expect, test } from '@jest/globals';
import { DISABLED_REASONS } from '../../../domain/webhooks/webhooks.ts';
import {
  changeText,
  groupChanges,
  failingWebhooks,
  groupFailures,
  groupMissed,
  isFullBackup,
  missedLeftOut,
  protectionOf,
  upcoming,
  wellText,
} from '../../../ui/areas/home/findings.ts';

const at = (day: number) => `2026-11-${String(day).padStart(2, '0')}T03:00:00.000Z`;

test('failed jobs are grouped by type and error, the most frequent first', () => {
  const job = (id: string, type: string, code: string | null) => ({
    id,
    type,
    error: code === null ? null : { code, message: `${code} of ${id}` },
    createdAt: at(1),
    finishedAt: at(1),
  });
  const groups = groupFailures([
    job('j4', 'core.echo', null),
    job('j3', 'http.request', 'timed_out'),
    job('j2', 'http.request', 'timed_out'),
    job('j1', 'http.request', 'http_status'),
  ]);
  expect(groups.map(({ type, code, count, newest }) => [type, code, count, newest.id])).toEqual([
    ['http.request', 'timed_out', 2, 'j3'],
    ['core.echo', 'unknown', 1, 'j4'],
    ['http.request', 'http_status', 1, 'j1'],
  ]);
  expect(groups[0]?.message).toBe('timed_out of j3');
  // An older one that has retried for long.
  const late = { ...job('j1', 'core.echo', 'timed_out'), finishedAt: at(2) };
  expect(groupFailures([job('j2', 'core.echo', 'timed_out'), late])).toMatchObject([
    { count: 2, newest: { id: 'j1' }, message: 'timed_out of j1' },
  ]);
});

describe('webhooks', () => {
  const webhook = (more: object) => ({
    id: 'whk_1',
    description: '',
    endpointUrl: 'https://chat.example/hook?token=********',
    enabled: true,
    failingSince: null,
    disabledAt: null,
    disabledReason: null,
    ...more,
  });

  test('that fail, or were disabled for it, are shown by their host or description', () => {
    expect(failingWebhooks([webhook({})])).toEqual([]);
    expect(failingWebhooks([webhook({ failingSince: at(3) })])).toMatchObject([
      { label: 'chat.example', since: at(3) },
    ]);
    const disabled = DISABLED_REASONS.map((disabledReason) =>
      webhook({ enabled: false, description: disabledReason, disabledReason, disabledAt: at(4) }),
    );
    expect(failingWebhooks(disabled).map(({ label }) => label)).toEqual([
      'endpoint_removed',
      'failing',
    ]);
  });
});

test('missed times are grouped by schedule and reason', () => {
  const run = (scheduleId: string, reason: string, day: number) => ({
    scheduleId,
    reason,
    dueAt: at(day),
  });
  const runs = [run('sch_1', 'missed', 9), run('sch_1', 'missed', 8), run('sch_2', 'missed', 7)];
  const names = { labels: { schedules: { sch_1: 'nightly' } } };
  expect(groupMissed(runs, names)).toMatchObject([
    { label: 'nightly', count: 2, dueAt: at(9), reason: 'no process ran in time' },
    { label: undefined, count: 1 },
  ]);
  expect(groupMissed(runs, names).every(({ isPart }) => !isPart)).toBe(true);
});

describe('of more missed times than are read', () => {
  const runs = [{ scheduleId: 'sch_1', reason: 'missed', dueAt: at(9) }];
  const names = { labels: { schedules: { sch_2: 'hourly' } } };
  const bySchedule = (more: object) => ({
    values: [
      { value: 'sch_1', count: 288 },
      { value: 'sch_2', count: 24 },
    ],
    exact: true,
    others: 0,
    ...more,
  });

  test('every schedule that was counted has a line, also if a noisy one has all of the newest', () => {
    expect(groupMissed(runs, names, bySchedule({}))).toMatchObject([
      { scheduleId: 'sch_1', count: 1, isPart: true },
      { label: 'hourly', count: 24, isPart: false, dueAt: undefined, reason: undefined },
    ]);
    expect(groupMissed(runs, names, bySchedule({ exact: false }))[1]?.isPart).toBe(true);
    expect(groupMissed(runs, names, null)).toMatchObject([{ scheduleId: 'sch_1', isPart: true }]);
  });

  test('what has no line is said', () => {
    expect(missedLeftOut(undefined)).toBeUndefined();
    expect(missedLeftOut(bySchedule({}))).toBeUndefined();
    expect(missedLeftOut(bySchedule({ others: 7 }))).toBe('Other schedules missed 7 times.');
    for (const uncounted of [null, bySchedule({ exact: false })])
      expect(missedLeftOut(uncounted)).toBe('Older missed times were not counted.');
  });
});

describe('protection', () => {
  const now = Date.parse(at(20));
  const backup = (created: number, tested: number | null) => ({
    id: `bkp_${created}`,
    label: 'daily',
    createdAt: at(created),
    snapshotAt: at(created),
    restoreTestedAt: tested === null ? null : at(tested),
  });
  const tones = (last: number | null, tested: number | null) => {
    const state = protectionOf(
      {
        last: last === null ? undefined : backup(last, null),
        tested: tested === null ? undefined : backup(tested, tested),
      },
      now,
      true,
    );
    return [state.lastTone, state.testedTone];
  };

  test('is judged by the age of the newest backup and of the newest test restore', () => {
    expect(tones(20, 13)).toEqual(['good', 'good']);
    expect(tones(17, 11)).toEqual(['warning', 'warning']);
    expect(tones(11, null)).toEqual(['bad', 'bad']);
    expect(tones(null, null)).toEqual(['bad', 'bad']);
  });

  test('judges nothing for readers who may not see the backups of everything', () => {
    const state = protectionOf({ last: backup(1, null), tested: undefined }, now, false);
    expect([state.lastTone, state.testedTone]).toEqual([undefined, undefined]);
  });

  test('has the schedules by their next time, also if the first one does not exist', () => {
    const schedules = [
      { id: 'sch_1', nextRuns: [{ at: at(25) }] },
      { id: 'sch_2', nextRuns: [{ at: null }] },
      { id: 'sch_3', nextRuns: [{ at: at(23) }, { at: at(24) }] },
      { id: 'sch_4', nextRuns: [{ at: null }, { at: at(22) }] },
      { id: 'sch_5', nextRuns: [] },
    ];
    expect(upcoming(schedules)).toEqual([
      { id: 'sch_4', at: at(22) },
      { id: 'sch_3', at: at(23) },
      { id: 'sch_1', at: at(25) },
    ]);
  });

  test('is no matter of schedules that back up some sections', () => {
    expect([{}, { mode: 'full' }, { mode: 'partial' }].map(isFullBackup)).toEqual([
      true,
      true,
      false,
    ]);
  });
});

test('an event of the inventory is said in words', () => {
  const data = { label: '10.0.0.0/8', changed: ['status'] };
  expect(changeText({ type: 'inventory.prefix.updated', data })).toEqual({
    verb: 'changed',
    kind: 'prefix',
    label: '10.0.0.0/8',
    fields: ['status'],
  });
  expect(changeText({ type: 'inventory.ip-address.deleted', data: {} })).toMatchObject({
    verb: 'deleted',
    kind: 'ip-address',
    label: '',
  });
});

test('changes of one kind by one actor are one line', () => {
  const event = (id: string, type: string, actorId: string) => ({
    id,
    type: `inventory.${type}`,
    actorId,
    subject: { id: `record of ${id}` },
    data: { label: id },
    createdAt: at(1),
  });
  const events = [
    event('e5', 'device.updated', 'alice'),
    event('e4', 'ip-address.created', 'system'),
    event('e3', 'ip-address.created', 'system'),
    event('e2', 'ip-address.created', 'alice'),
    event('e1', 'device.updated', 'alice'),
  ];
  const shown = (most: number, hasMore = false) =>
    groupChanges({ events, hasMore }, most).map(({ kind, count, newest, isPart }) => [
      kind,
      count,
      newest.id,
      ...(isPart ? ['or more'] : []),
    ]);
  expect(shown(9)).toEqual([
    ['device', 1, 'e5'],
    ['ip-address', 2, 'e4'],
    ['ip-address', 1, 'e2'],
    ['device', 1, 'e1'],
  ]);
  expect(shown(9, true).at(-1)).toEqual(['device', 1, 'e1', 'or more']);
  // The last line counts all of its changes.
  expect(shown(2, true)).toEqual([
    ['device', 1, 'e5'],
    ['ip-address', 2, 'e4'],
  ]);
});

describe('if nothing was found', () => {
  const all = { jobs: 'all', webhooks: 'all', schedules: 'all', backups: 'all' } as const;

  test('all is well for readers who see all of it', () => {
    const { tone, text } = wellText(all, true);
    expect(tone).toBe('good');
    expect(text).toMatch(
      /^All is well: nothing waits for you, no job failed in 24 hours, .*test-restored\.$/,
    );
    expect(wellText(all, false).text).toMatch(
      /^Nothing waits for you, .*no scheduled time was missed\.$/,
    );
  });

  test.each(['jobs', 'webhooks', 'schedules', 'backups'] as const)(
    'nothing is good, and nothing is said of what is not seen, for readers of a part of %s',
    (part) => {
      const { tone, text } = wellText({ ...all, [part]: 'some' }, part !== 'backups');
      expect(tone).toBeUndefined();
      expect(text).not.toMatch(/All is well/);
      if (part !== 'backups') expect(text).toContain('that you may see');
    },
  );

  test('what may not be read is not mentioned', () => {
    const none = { jobs: 'none', webhooks: 'none', schedules: 'none', backups: 'none' } as const;
    expect(wellText(none, false)).toEqual({ tone: undefined, text: 'Nothing waits for you.' });
    expect(wellText({ ...none, jobs: 'all' }, false)).toEqual({
      tone: 'good',
      text: 'Nothing waits for you, no job failed in 24 hours.',
    });
  });
});
