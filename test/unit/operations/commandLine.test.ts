import { execFile, execFileSync, spawn } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { promisify } from 'node:util';
import { expect, test } from '@jest/globals';
import { COMPILE_CACHE } from '../../support/compileCache.ts';

const ROOT = path.resolve(import.meta.dirname, '../../..');

/** Programs that operators call, with the words that select a command. The first two start processes. */
const PROGRAMS = [
  ['../dev.ts'],
  ['../serve.js'],
  ['main.ts'],
  ['main.ts', 'admin'],
  ['main.ts', 'token'],
  ['main.ts', 'verify-audit'],
  ['main.ts', 'deployment'],
  ['main.ts', 'demo-data'],
  ['main.ts', 'reencrypt-secrets'],
  ['main.ts', 'leave-temporal'],
  ['archive.ts'],
  ['bundle.ts'],
  ['jobType.ts'],
  ['migrate.ts'],
  ['openapi.ts'],
];

type RunOptions = { closesEarly?: boolean; env?: Record<string, string> };

/** `closesEarly` closes the pipe after the first chunk, as `head` does. */
function run(words: readonly string[], { closesEarly = false, env = {} }: RunOptions = {}) {
  const [program = '', ...args] = words;
  const child = spawn(process.execPath, [path.join(ROOT, 'processes/cli', program), ...args], {
    env: {
      PATH: process.env.PATH,
      NODE_COMPILE_CACHE: COMPILE_CACHE,
      DATABASE_URL: 'postgres://unused',
      HOLDFAST_LOG_LEVEL: 'silent',
      ...env,
    },
    cwd: '/',
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  let [stdout, stderr] = ['', ''];
  child.stdout.on('data', (chunk: Buffer) => {
    stdout += chunk.toString();
    if (closesEarly) child.stdout.destroy();
  });
  child.stderr.on('data', (chunk: Buffer) => (stderr += chunk.toString()));
  return new Promise<{ status: number | null; stdout: string; stderr: string }>((resolve) =>
    child.once('close', (status) => resolve({ status, stdout, stderr })),
  );
}

test.each(PROGRAMS.map((words) => ({ words, name: words.join(' ') })))(
  '$name has --help and refuses unknown options',
  async ({ words }) => {
    const [help, unknown] = await Promise.all([
      run([...words, '--help']),
      run([...words, '--no-such-option']),
    ]);
    expect(help).toEqual({
      status: 0,
      stdout: expect.stringContaining(words[1] ?? ''),
      stderr: '',
    });
    expect(help.stdout.length).toBeGreaterThan(50);
    expect(unknown).toMatchObject({ status: 2, stdout: '' });
    expect(unknown.stderr).toContain('--no-such-option');
    expect(unknown.stderr).toContain(help.stdout);
  },
);

/** As Kubernetes sets it in pods for the Services `holdfast` and `holdfast-metrics`. */
const SERVICE_LINKS = {
  HOLDFAST_PORT: 'tcp://10.96.0.7:80',
  HOLDFAST_METRICS_PORT: 'tcp://10.96.0.8:80',
};
const INVALID = { ...SERVICE_LINKS, HOLDFAST_ROLE: 'queen', HOLDFAST_TRUSTED_GATEWAYS: '*' };

test.each([
  { words: ['migrate.ts', 'pending'], env: INVALID },
  { words: ['archive.ts', 'restore', 'bkp_1.hfb'], env: INVALID },
  { words: ['main.ts', 'verify-audit'], env: SERVICE_LINKS },
  { words: ['main.ts', 'token', 'list', '--service', 'ci'], env: SERVICE_LINKS },
  { words: ['archive.ts', 'register'], env: { ...SERVICE_LINKS, HOLDFAST_BACKUP_DIR: '/nowhere' } },
])('$words needs no variable of a process that listens', async ({ words, env }) => {
  const DATABASE_URL = 'postgres://a:b@127.0.0.1:1/x';
  const { status, stderr } = await run(words, { env: { ...env, DATABASE_URL } });
  expect(stderr).toBe(
    'Failed: the database at DATABASE_URL does not answer: connect ECONNREFUSED 127.0.0.1:1\n',
  );
  expect(status).toBe(1);
});

const { scripts } = JSON.parse(readFileSync(path.join(ROOT, 'package.json'), 'utf8')) as {
  scripts: Record<string, string>;
};

const CHECKED_NODE = 'node --import ./processes/nodeVersion.js ';

test('every script says that an older Node cannot run it', async () => {
  for (const [name, script] of Object.entries(scripts)) {
    const [first] = script.split(' && ').filter((each) => /^node .*\.ts\b/.test(each));
    if (first !== undefined)
      expect([name, first]).toEqual([name, expect.stringContaining(CHECKED_NODE)]);
  }
  const pretended = `data:text/javascript,${encodeURIComponent(
    "Object.defineProperty(process, 'versions', { value: { node: '20.19.0' } })",
  )}`;
  const config = path.join(ROOT, 'jest.config.js');
  const check = path.join(ROOT, 'processes/nodeVersion.js');
  for (const args of [
    [path.join(ROOT, 'processes/serve.js')],
    ['--import', check, '-e', '0'],
    [config],
  ]) {
    const ended = promisify(execFile)(process.execPath, ['--import', pretended, ...args]);
    await expect(ended).rejects.toMatchObject({
      code: 1,
      stdout: '',
      stderr: expect.stringMatching(/^Holdfast needs Node 24 or newer; this is v.+\n$/),
    });
  }
});

/** The scripts of package.json that the image has as commands, with what each runs. */
function imageCommands(): [string, string][] {
  const commands = Object.entries(scripts).map(([name, script]): [string, string] => [
    name,
    script.replace(CHECKED_NODE, 'node '),
  ]);
  // `bundle` needs the devDependencies, which the image does not have.
  return commands.filter(
    ([name, script]) => /^node processes\/cli\/\S+( \S+)?$/.test(script) && name !== 'bundle',
  );
}

test('`holdfast` in the image has the commands of npm run', () => {
  const folder = mkdtempSync(path.join(tmpdir(), 'holdfast-command-'));
  try {
    writeFileSync(path.join(folder, 'node'), '#!/bin/sh\necho "node $*"\n', { mode: 0o755 });
    const env = { PATH: `${folder}:${process.env.PATH}` };
    const called = (name: string) =>
      execFileSync(path.join(ROOT, 'docker/holdfast'), [name, '--flag', 'word'], { env })
        .toString()
        .replaceAll(/\/\S*\/(?=processes\/)/g, '');
    const commands = imageCommands();
    expect(commands.length).toBeGreaterThan(9);
    expect(commands.map(([name]) => called(name))).toEqual(
      commands.map(([, script]) => `${script} --flag word\n`),
    );
  } finally {
    rmSync(folder, { recursive: true });
  }
});

test('`holdfast` lists all commands of the image, as they are called there', async () => {
  const env = {
    PATH: `${path.dirname(process.execPath)}:${process.env.PATH}`,
    NODE_COMPILE_CACHE: COMPILE_CACHE,
  };
  const helpOf = async (command: string) =>
    (await promisify(execFile)(path.join(ROOT, 'docker/holdfast'), [command, '--help'], { env }))
      .stdout;
  const listed = (await helpOf('--help')).match(/(?<=^ {2})[\w-]+/gm);
  expect([...new Set(listed)].sort()).toEqual(
    imageCommands()
      .map(([name]) => name)
      .sort(),
  );
  const texts = await Promise.all(['archive', 'migrate', 'openapi', 'job-type'].map(helpOf));
  expect(texts.join('\n')).not.toContain('npm run');
  expect(texts[1]).toMatch(/^holdfast migrate up \[--wait <seconds>\]\n/);
});

test.each([[['openapi.ts']], [['main.ts', 'demo-data', '--print']]])(
  '%s ends without a message when its reader closes the pipe',
  async (words) => {
    expect(await run(words, { closesEarly: true })).toMatchObject({ status: 141, stderr: '' });
  },
);
