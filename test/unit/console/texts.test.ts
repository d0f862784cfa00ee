import { describe, expect, test } from '@jest/globals';
import {
  formatBytes,
  formatDuration,
  formatFullTime,
  formatRelative,
  formatTime,
  labelOfField,
  wordsOfField,
} from '../../../ui/parts/format.ts';
import { Problem, reach, whole } from '../../../ui/app/problem.ts';
import { labelOf, mergeNames, personKey, personName } from '../../../ui/parts/names.ts';
import type { IdKind } from '../../../platform/ids.ts';
import { hasNoPage, recordPath, shortId } from '../../../ui/parts/recordIds.ts';
import { formatUsage, usageText } from '../../../ui/areas/inventory/amounts.ts';
import { statusDisplay } from '../../../ui/parts/statuses.ts';
import { JOB_STATUSES } from '../../../domain/jobs/jobs.ts';
import { APPROVAL_STATUSES, EXECUTIONS } from '../../../domain/approvals/approvals.ts';
import { RUN_OUTCOMES } from '../../../domain/schedules/schedules.ts';
import { DELIVERY_STATUSES } from '../../../domain/webhooks/webhooks.ts';
import { TOKEN_STATUSES } from '../../../domain/auth/tokens.ts';

describe('durations', () => {
  test.each([
    [0, '0 ms'],
    [340, '340 ms'],
    [999.6, '1 s'],
    [2_400, '2.4 s'],
    [3_000, '3 s'],
    [9_960, '10 s'],
    [59_960, '1 min'],
    [192_400, '3 min 12 s'],
    [7_200_000, '2 h'],
    [3_601_000, '1 h'],
    [273_600_000, '3 d 4 h'],
    [Number.NaN, '–'],
    [-1, '–'],
  ])('%d ms is %s', (ms, text) => {
    expect(formatDuration(ms)).toBe(text);
  });
});

describe('times', () => {
  const at = new Date('2026-11-23T09:30:05.120Z');
  const utc = { utc: true };

  test('are as short as they are clear', () => {
    expect(formatTime(at, new Date('2026-11-23T23:00:00Z'), utc)).toBe('09:30:05 UTC');
    expect(formatTime(at, new Date('2026-12-24T00:00:00Z'), utc)).toBe('23 Nov 09:30 UTC');
    expect(formatTime(at, new Date('2027-01-01T00:00:00Z'), utc)).toBe('23 Nov 2026 09:30 UTC');
  });

  test('are in the zone of the reader, also where the day is another one', () => {
    const choice = { utc: false, timeZone: 'Asia/Tokyo' };
    expect(formatFullTime(new Date('2026-11-22T20:00:00Z'), choice)).toBe(
      '23 Nov 2026 05:00:00 GMT+9',
    );
    expect(formatTime(new Date('2026-11-22T20:00:00Z'), at, choice)).toBe('05:00:00');
  });

  test.each([
    [0, 'now'],
    [-4_000, 'now'],
    [-30_000, '30 s ago'],
    [-200_000, '3 min ago'],
    [7_200_000, 'in 2 h'],
    [-200_000_000, '2 d ago'],
  ])('%d ms away is %s', (distance, text) => {
    expect(formatRelative(new Date(at.getTime() + distance), at)).toBe(text);
  });
});

test('sizes have the largest unit of which there is one', () => {
  expect([0, 1_023, 1_024, 4_404_019, 2 ** 60].map(formatBytes)).toEqual([
    '0 bytes',
    '1023 bytes',
    '1.0 KiB',
    '4.2 MiB',
    '1024 PiB',
  ]);
});

test.each([
  [0, '0', '0 %', '0 %'],
  // 1,000 addresses of a 10.0.0.0/8.
  [0, '1000', '<0.1 %', '<0.01 %'],
  [0.05, '9000', '<0.1 %', '0.05 %'],
  [12.34, '2070000', '12 %', '12.34 %'],
  [99.99, '16777213', '>99.9 %', '99.99 %'],
  [100, '16777214', '100 %', '100 %'],
])('%d per cent of a prefix with %s used are %s, in full %s', (percent, used, short, full) => {
  expect([formatUsage({ percent, used }), usageText({ percent, used })]).toEqual([short, full]);
});

test('names of fields become words', () => {
  expect(
    ['createdAt', 'job_type', 'vrfId', 'assignedUserIds', 'id', 'url', 'timeoutMs'].map(
      labelOfField,
    ),
  ).toEqual(['Created at', 'Job type', 'VRF', 'Assigned user', 'ID', 'URL', 'Timeout (ms)']);
  expect(['speedMbps', 'lengthMeters', 'lagId', 'ms'].map(labelOfField)).toEqual([
    ...['Speed (Mbps)', 'Length (m)', 'LAG', 'Ms'],
  ]);
  expect(['primaryIp4Id', 'lengthMeters'].map(wordsOfField)).toEqual([
    'primary IPv4',
    'length (m)',
  ]);
});

describe('names of records and people', () => {
  const names = mergeNames([
    { labels: { sites: { sit_1: 'ams1' } }, people: { usr_1: { displayName: 'Alice' } } },
    undefined,
    { labels: { sites: { sit_2: 'fra2' }, tenants: { acme: 'Acme Ltd' } } },
  ]);

  test('are found by kind, or in any kind', () => {
    expect(labelOf(names, 'sit_1', 'sites')).toBe('ams1');
    expect(labelOf(names, 'sit_2')).toBe('fra2');
    expect(labelOf(names, 'acme', 'sites')).toBeUndefined();
  });

  test('differ by what is unique, also if an answer has the display names only', () => {
    const people = mergeNames([
      { people: { usr_1: { displayName: 'Olga', username: 'olga' } } },
      { people: { usr_1: { displayName: 'Olga' }, usr_2: { displayName: 'Olga' } } },
      { people: { usr_3: { displayName: 'max', username: 'max', provider: null } } },
      { people: { usr_4: { displayName: 'max', username: 'max', provider: 'Company' } } },
    ]);
    expect(
      ['usr_1', 'usr_2', 'usr_3', 'usr_4', 'system'].map((id) => personKey(people, id)),
    ).toEqual(['olga', 'usr_2', undefined, 'max, Company', undefined]);
  });

  test('are the id where there is none', () => {
    expect(personName(names, 'usr_1')).toBe('Alice');
    expect(personName(names, 'gateway:bob')).toBe('gateway:bob');
    expect(personName(names, 'system')).toBe('Holdfast');
  });
});

test('records have a page by the kind of their id', () => {
  expect(recordPath('job_01jd0cmxk5e5v8kyzwq0q8s3rt')).toBe('/jobs/job_01jd0cmxk5e5v8kyzwq0q8s3rt');
  expect(recordPath('sit_01jd0cmxk5e5v8kyzwq0q8s3rt')).toBe(
    '/inventory/sites/sit_01jd0cmxk5e5v8kyzwq0q8s3rt',
  );
  expect(recordPath('xyz_01jd0cmxk5e5v8kyzwq0q8s3rt')).toBe('/id/xyz_01jd0cmxk5e5v8kyzwq0q8s3rt');
  expect(recordPath('../x')).toBe('/id/..%2Fx');
  expect(shortId('job_01jd0cmxk5e5v8kyzwq0q8s3rt')).toBe('job_…q0q8s3rt');
});

/** What becomes of a link to each kind of id: a page, a search or another answer at `/id/`, or no link at all. */
const LINKS: Readonly<Record<IdKind, 'page' | 'id' | 'none'>> = {
  ...{ job: 'page', evt: 'page', aud: 'page', whk: 'page', dlv: 'page', sch: 'page', apr: 'page' },
  ...{ bkp: 'page', imp: 'page', usr: 'page', tok: 'page', idp: 'page', rol: 'page', asg: 'page' },
  ...{ map: 'page', sec: 'page', rnr: 'page', reg: 'page', sit: 'page', loc: 'page', rck: 'page' },
  ...{ mfr: 'page', dty: 'page', drl: 'page', plt: 'page', dev: 'page', int: 'page', cab: 'page' },
  ...{ vrf: 'page', vlg: 'page', vln: 'page', pfx: 'page', rng: 'page', ipa: 'page', cfd: 'page' },
  ...{ run: 'id', viw: 'id' },
  ...{ req: 'none', ses: 'none', hld: 'none', aar: 'none' },
  ...{ out: 'none', dec: 'none', wrk: 'none', lgn: 'none' },
};

test.each(Object.entries(LINKS))('a link to an id of the kind %s leads to: %s', (kind, leads) => {
  const id = `${kind}_01jd0cmxk5e5v8kyzwq0q8s3rt`;
  expect(hasNoPage(id)).toBe(leads === 'none');
  expect(recordPath(id).startsWith('/id/')).toBe(leads !== 'page');
});

test('every status of the product has its own display', () => {
  const statuses = [
    ...JOB_STATUSES,
    ...APPROVAL_STATUSES,
    ...EXECUTIONS,
    ...RUN_OUTCOMES,
    ...DELIVERY_STATUSES,
    ...TOKEN_STATUSES,
  ];
  const unknown = statusDisplay('a status of tomorrow');
  expect(unknown).toMatchObject({ tone: 'neutral', label: 'A status of tomorrow' });
  expect(statuses.filter((status) => statusDisplay(status).icon === unknown.icon)).toEqual([]);
});

describe('a server that does not answer', () => {
  const send = (method: string) =>
    reach(new Request('http://localhost/api/jobs', { method }), () =>
      Promise.reject(new TypeError('Failed to fetch')),
    ).catch((error: unknown) => error as Problem);

  test('may have made a change that was asked for; a read changes nothing', async () => {
    expect(await send('POST')).toMatchObject({
      code: 'network',
      detail: 'The server does not answer. The request may or may not have been carried out.',
    });
    expect(await send('GET')).toMatchObject({
      code: 'network',
      detail: 'The server does not answer.',
    });
  });

  test('is not what an aborted request, a problem or a broken answer is called', async () => {
    const aborted = new DOMException('Aborted', 'AbortError');
    const problem = new Problem({ status: 401, code: 'signed_out', title: '', detail: '' });
    for (const error of [aborted, problem]) {
      const sent = reach(new Request('http://localhost/'), () => Promise.reject(error));
      await expect(sent).rejects.toBe(error);
      await expect(whole(Promise.reject(error))).rejects.toBe(error);
    }
    await expect(whole(Promise.reject(new SyntaxError('JSON')))).rejects.toMatchObject({
      code: 'network',
      detail: 'The connection broke before the end of the answer.',
    });
  });
});
