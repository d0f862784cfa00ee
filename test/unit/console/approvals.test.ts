import { describe, expect, test } from '@jest/globals';
import { APPROVAL_STATUSES, EXECUTIONS } from '../../../domain/approvals/approvals.ts';
import {
  deciderReason,
  isOpen,
  mayComment,
  reasonText,
  stateOf,
} from '../../../ui/parts/approvals/states.ts';
import { partsOfText } from '../../../ui/parts/approvals/words.ts';
import { statusDisplay } from '../../../ui/parts/statuses.ts';
import { followProgress, type Live } from '../../../ui/areas/approvals/jobProgress.ts';
import { changesAfter } from '../../../ui/areas/approvals/changesAfter.ts';

describe('the state of a request', () => {
  test('has its own words and a colour, for every status and execution', () => {
    const states = [
      ...APPROVAL_STATUSES.map((status) => stateOf({ status, execution: 'none' })),
      ...EXECUTIONS.map((execution) => stateOf({ status: 'approved', execution })),
    ];
    expect(new Set(states.map(({ label }) => label)).size).toBe(states.length - 1);
    for (const { status } of states) expect(statusDisplay(status).icon).not.toBe('dot');
  });

  test('is open while something can still happen', () => {
    expect(isOpen({ status: 'pending', execution: 'none' })).toBe(true);
    expect(isOpen({ status: 'approved', execution: 'queued' })).toBe(true);
    expect(isOpen({ status: 'approved', execution: 'succeeded' })).toBe(false);
    expect(isOpen({ status: 'rejected', execution: 'none' })).toBe(false);
  });
});

describe('why one may not decide', () => {
  test('is a sentence for every reason of the API', () => {
    const reasons = ['self_approval', 'permission_denied', 'not_assigned', 'already_decided'];
    for (const reason of [...reasons, 'disabled', ...APPROVAL_STATUSES.slice(1)])
      expect(reasonText(reason)).toMatch(/^[A-Z][^_]+\.$/);
    expect(reasonText('brand_new')).toBe('Reason: brand_new.');
    expect(deciderReason('rejected')).toBeUndefined();
    expect(deciderReason('self_approval')).toBe('made the request');
  });

  test('does not keep requesters and deciders from commenting', () => {
    expect(mayComment('self_approval', false)).toBe(true);
    expect(mayComment(null, false)).toBe(true);
    expect(mayComment('not_assigned', false)).toBe(false);
    expect(mayComment('permission_denied', true)).toBe(true);
  });
});

test('a text of the API is split into words, ids and times', () => {
  const text =
    'Then a job runs at 2026-12-05T23:23:29.593Z, with the rights of usr_01jd0cmxk5e5v8kyzwq0q8s3rt.';
  expect(partsOfText(text)).toEqual([
    { kind: 'words', text: 'Then a job runs at ' },
    { kind: 'time', time: '2026-12-05T23:23:29.593Z' },
    { kind: 'words', text: ', with the rights of ' },
    { kind: 'id', id: 'usr_01jd0cmxk5e5v8kyzwq0q8s3rt' },
    { kind: 'words', text: '.' },
  ]);
  expect(partsOfText('')).toEqual([]);
});

test('the changes of a record since a request are those after it, also when a restore has returned to an earlier version', () => {
  const changes = [
    { version: 4, at: '2026-11-27T12:00:00.000Z' },
    { version: 3, at: '2026-11-27T11:00:00.000Z' },
    { version: 5, at: '2026-11-27T09:00:00.000Z' },
  ];
  expect(changesAfter(changes, '2026-11-27T10:00:00Z')).toEqual(changes.slice(0, 2));
  expect(changesAfter(changes, '2026-11-27T12:00:00Z')).toEqual([]);
  expect(changesAfter(changes.slice(0, 2), '2026-11-27T10:00:00Z')).toEqual(changes.slice(0, 2));
});

test('the progress of a job goes on after its stream was cut off, and is not kept until then', async () => {
  const job = (percent: number) => ({ event: 'job', data: `{"progress":{"percent":${percent}}}` });
  const log = (id: string) => ({ id, event: 'log', data: `{"message":"Line ${id}"}` });
  const streams = [
    [{ id: undefined, ...job(10) }, log('1')],
    [
      { id: '1', ...job(60) },
      { id: '1', event: 'end', data: '{}' },
    ],
  ];
  const asked: (string | undefined)[] = [];
  const shown: Live<{ percent: number }>[] = [];
  await followProgress<{ percent: number }>({
    read: async function* (lastEventId) {
      asked.push(lastEventId);
      await Promise.resolve();
      yield* streams.shift() ?? [];
    },
    onLive: (live) => shown.push(live),
    wait: () => Promise.resolve(),
    signal: new AbortController().signal,
  });
  expect(asked).toEqual([undefined, '1']);
  expect(shown.map(({ progress }) => progress?.percent)).toEqual([10, 10, undefined, 60]);
  expect(shown.at(-1)?.lastLine).toBe('Line 1');
});
