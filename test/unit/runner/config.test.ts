import { expect, test } from '@jest/globals';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { runnerEnvironment } from '../../../processes/localRunner.ts';
import { readRunnerConfig, readTokenFile } from '../../../runner/config.ts';

const TOKEN = 'hfw_0123456789abcdef0123456789';
const MINIMAL = { HOLDFAST_URL: 'https://holdfast.example.net/', HOLDFAST_RUNNER_TOKEN: TOKEN };

test('defaults, and every setting', async () => {
  expect(readRunnerConfig(MINIMAL)).toMatchObject({
    url: 'https://holdfast.example.net',
    token: TOKEN,
    pools: ['default'],
    typeFolders: ['/etc/holdfast/job-types'],
    slots: 10,
    wrapper: [],
    secretsFolder: undefined,
  });
  const folder = await mkdtemp(path.join(os.tmpdir(), 'holdfast-token-'));
  const file = path.join(folder, 'token');
  await writeFile(file, `${TOKEN}\n`);
  expect(
    readRunnerConfig({
      HOLDFAST_URL: 'http://127.0.0.1:8080',
      HOLDFAST_RUNNER_TOKEN_FILE: file,
      HOLDFAST_RUNNER_POOL: 'ams, fra',
      HOLDFAST_RUNNER_TYPES: '/a,/b',
      HOLDFAST_RUNNER_SLOTS: '3',
      HOLDFAST_RUNNER_FOLDER: '/var/lib/runner',
      HOLDFAST_RUNNER_SECRETS: '/secrets',
      HOLDFAST_RUNNER_WRAPPER: '["bwrap", "--die-with-parent"]',
    }),
  ).toMatchObject({
    token: TOKEN,
    tokenFile: file,
    pools: ['ams', 'fra'],
    typeFolders: ['/a', '/b'],
    slots: 3,
    workFolder: '/var/lib/runner',
    secretsFolder: '/secrets',
    wrapper: ['bwrap', '--die-with-parent'],
  });
  expect(await readTokenFile(file)).toBe(TOKEN);
  await writeFile(file, 'half of a to');
  expect(await readTokenFile(file)).toBeUndefined();
  await rm(folder, { recursive: true });
  expect(await readTokenFile(file)).toBeUndefined();
});

test.each([
  ['DATABASE_URL', { DATABASE_URL: 'postgres://db' }],
  ['HOLDFAST_MASTER_KEYS', { HOLDFAST_MASTER_KEYS: 'k1:x' }],
  ['HOLDFAST_URL', { HOLDFAST_URL: 'ftp://x' }],
  ['HOLDFAST_RUNNER_TOKEN', { HOLDFAST_RUNNER_TOKEN: 'hfp_0123456789abcdef0123456789' }],
  [
    'HOLDFAST_RUNNER_TOKEN_FILE',
    { HOLDFAST_RUNNER_TOKEN: '', HOLDFAST_RUNNER_TOKEN_FILE: '/missing' },
  ],
  ['HOLDFAST_RUNNER_POOL', { HOLDFAST_RUNNER_POOL: 'Not A Pool' }],
  ['HOLDFAST_RUNNER_WRAPPER', { HOLDFAST_RUNNER_WRAPPER: 'bwrap' }],
])('a runner refuses to start with a wrong %s', (name, env) => {
  const read = () => readRunnerConfig({ ...MINIMAL, ...env });
  expect(read).toThrow(new RegExp(`^Invalid configuration:\\n  ${name}: `));
  expect(read).not.toThrow(/0123456789abcdef|postgres:|k1:x/);
});

test('the runner of npm start gets nothing that opens the database', () => {
  const env = runnerEnvironment(
    {
      PATH: '/bin',
      DATABASE_URL: 'postgres://db',
      HOLDFAST_MASTER_KEYS: 'k1:x',
      HOLDFAST_BACKUP_S3_SECRET_ACCESS_KEY: 'x',
      HOLDFAST_METRICS_TOKEN: 'x',
      AWS_SECRET_ACCESS_KEY: 'x',
      HOLDFAST_RUNNER_SLOTS: '2',
    },
    { folder: '/data', base: 'http://127.0.0.1:8080', temporalAddress: '127.0.0.1:7233' },
  );
  expect(Object.keys(env).sort()).toEqual([
    'HOLDFAST_ROLE',
    'HOLDFAST_RUNNER_FOLDER',
    'HOLDFAST_RUNNER_POOL',
    'HOLDFAST_RUNNER_SLOTS',
    'HOLDFAST_RUNNER_TOKEN_FILE',
    'HOLDFAST_RUNNER_TYPES',
    'HOLDFAST_URL',
    'PATH',
    'TEMPORAL_ADDRESS',
  ]);
});

test('names of a runner that nothing reads are reported, not those of other roles', () => {
  const env = { HOLDFAST_RUNNER_WRAPER: '[]', HOLDFAST_HOST: '0.0.0.0', HOLDFAST_PORT: '8080' };
  const { unknownVariables } = readRunnerConfig({ ...MINIMAL, HOLDFAST_ROLE: 'runner', ...env });
  expect(unknownVariables).toEqual(['HOLDFAST_RUNNER_WRAPER']);
});
