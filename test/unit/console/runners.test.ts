import { expect, test } from '@jest/globals';
import { listedPools } from '../../../ui/areas/runners/poolList.ts';
import {
  poolState,
  queuedText,
  runnerCommand,
  whyNotDelete,
  whyQueued,
} from '../../../ui/areas/runners/poolText.ts';
import { historyText, jobOf } from '../../../ui/areas/secrets/secretText.ts';
import { rolesThatRun, secretsIn } from '../../../ui/areas/jobTypes/typeText.ts';

const pool = (name: string, more: object = {}) => ({
  name,
  description: '',
  runners: 1,
  slots: 4,
  runningJobs: 0,
  queuedJobs: 0,
  ...more,
});

test('pools whose jobs wait for a runner come first, and follow the filters of the address', () => {
  const pools = [
    pool('ams'),
    pool('fra', { runners: 0, queuedJobs: 3 }),
    pool('ber', { runners: 0, description: 'In Berlin' }),
  ];
  const names = (search: Record<string, string>) =>
    listedPools(pools, search).map(({ name }) => name);
  expect(names({})).toEqual(['fra', 'ams', 'ber']);
  expect(names({ text: ' berlin' })).toEqual(['ber']);
  expect(names({ without: 'on' })).toEqual(['fra', 'ber']);
  expect(pools.map((each) => poolState(each).status)).toEqual(['connected', 'offline', 'none']);
  expect(queuedText({ queuedJobs: 1_000 })).toBe('1000 or more');
});

test.each([
  [/disabled/, {}, [], 'disabled'],
  [/30 seconds/, { runners: 0 }, [], 'accepted'],
  [/announced/, {}, [{ alive: false, reachesTemporal: true, types: { 'net.a': 'x' } }], 'accepted'],
  [/announced/, {}, [{ alive: true, reachesTemporal: false, types: { 'net.a': 'x' } }], 'accepted'],
  [
    /All slots/,
    { runningJobs: 4 },
    [{ alive: true, reachesTemporal: true, types: { 'net.a': 'x' } }],
    'accepted',
  ],
  [/share/, {}, [{ alive: true, reachesTemporal: true, types: { 'net.a': 'x' } }], 'accepted'],
] as const)('a queued job waits because of %s', (reason, more, runners, state) => {
  const types = [{ name: 'net.a', state }];
  expect(whyQueued('net.a', { pool: pool('ams', more), runners, types })).toMatch(reason);
});

test('a pool with job types is not deleted', () => {
  expect(whyNotDelete([])).toBeUndefined();
  expect(whyNotDelete([{ name: 'net.a', state: 'waiting' }])).toMatch(/Delete these first/);
});

test('the command of a runner names the namespace unless it is the default', () => {
  const command = (namespace?: string) =>
    runnerCommand({ origin: 'https://hf', pool: 'ams', namespace });
  expect(command('default')).toMatch(/HOLDFAST_URL=https:\/\/hf [^]*HOLDFAST_RUNNER_POOL=ams/);
  expect(command('default')).not.toContain('NAMESPACE');
  expect(command('prod')).toContain('TEMPORAL_NAMESPACE=prod');
});

test('the history of a secret says what has changed, and which job got it', () => {
  const before = { description: '', pools: ['ams'] };
  const entry = (action: string, after: object) => ({ action, outcome: 'done', before, after });
  expect(historyText(entry('secret.update', { ...before, valueChanged: true }))).toBe(
    'Value replaced',
  );
  expect(
    historyText(entry('secret.update', { description: 'x', pools: [], valueChanged: false })),
  ).toBe('Pools none instead of ams; description changed');
  const use = entry('secret.use', { jobId: 'job_1', attempt: 2, pool: 'ams' });
  expect(historyText(use)).toBe('Released to attempt 2 in the pool ams, of the job');
  expect([jobOf(use), jobOf(entry('secret.update', before))]).toEqual(['job_1', undefined]);
  expect(historyText({ ...use, outcome: 'denied' })).toBe('secret.use: denied');
});

test('a type names the roles that can run it, and its secrets', () => {
  const role = (name: string, permissions: string[], jobTypes: string[]) => ({
    name,
    permissions,
    jobTypes,
  });
  const roles = [
    role('Admin', ['job:write'], ['*']),
    role('Net', ['job:write'], ['net.*']),
    role('Other', ['job:write'], ['dns.*']),
    role('Reader', ['job:read'], ['*']),
  ];
  const type = { name: 'net.a', access: 'granted', permission: null };
  expect(rolesThatRun(roles, type)).toEqual(['Admin', 'Net']);
  expect(rolesThatRun(roles, { ...type, access: 'open' })).toEqual(['Admin', 'Net', 'Other']);
  expect(rolesThatRun(roles, { ...type, permission: 'backup:write' })).toEqual([]);
  expect(secretsIn({ secrets: { TOKEN: { secret: 'key' } } })).toEqual([
    { as: 'TOKEN', secret: 'key' },
  ]);
  expect(secretsIn(undefined)).toEqual([]);
});
