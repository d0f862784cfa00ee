import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import type { JobRecord } from '../../../api/jobs/schemas.ts';
import { createLog } from '../../../platform/log.ts';
import { startRunner, type Runner } from '../../../runner/process.ts';
import { readRunnerConfig } from '../../../runner/config.ts';
import { startApp, type TestApp } from '../../support/app.ts';
import type { TestClient } from '../../support/client.ts';
import { eventually } from '../../support/eventually.ts';
import { createRunnerSecret } from '../../support/runner.ts';
import { isRunning } from '../../support/runner/declared.ts';
import { admin, createUser } from '../../support/users.ts';

let app: TestApp;
let root: TestClient;
let runner: Runner;
let folder: string;
let token: string;

const POOL = 'commands';
const WAIT = { prefer: 'wait=30' };

const declare = (name: string, script: string, fields: object = {}) =>
  writeFile(
    path.join(folder, `${name}.yaml`),
    JSON.stringify({
      apiVersion: 'holdfast/v1',
      name: `cmd.${name}`,
      summary: name,
      pool: POOL,
      access: 'open',
      payload: { type: 'object' },
      lostAfterSeconds: 5,
      run: { argv: ['bash', '-c', script] },
      ...fields,
    }),
  );

const runnerEnv = (work: string) => ({
  HOLDFAST_URL: app.client.base,
  HOLDFAST_RUNNER_TOKEN: token,
  HOLDFAST_RUNNER_POOL: POOL,
  HOLDFAST_RUNNER_TYPES: folder,
  HOLDFAST_RUNNER_FOLDER: path.join(folder, work),
  HOLDFAST_STOP_GRACE_MS: '0',
  TEMPORAL_ADDRESS: app.env.TEMPORAL_ADDRESS,
});

function startRunnerHere(): Promise<Runner> {
  const config = readRunnerConfig(runnerEnv('work'));
  return startRunner({ config, temporal: app.deps.temporal, log: createLog('silent', false) });
}

const polling = () =>
  eventually(
    () => runner.isRunning(),
    (is) => is,
  );

beforeAll(async () => {
  app = await startApp();
  root = admin(app);
  folder = await mkdtemp(path.join(os.tmpdir(), 'holdfast-commands-'));
  await createUser(app, 'viewer');
  token = await createRunnerSecret(app, POOL);
  await root
    .put(`/api/pools/${POOL}`, { acceptTypes: ['cmd.*'], tenantSharePercent: 100 })
    .expect(200);
  await declare(
    'hello',
    `echo "Hello $(id -u)"; echo '{"progress": 50, "message": "half"}' >> $HOLDFAST_EVENTS
     cat $HOLDFAST_PAYLOAD > $HOLDFAST_RESULT; exit $(grep -q fail $HOLDFAST_PAYLOAD && echo 75 || echo 0)`,
    { exitCodes: { '75': { code: 'busy', retryable: false } } },
  );
  await declare(
    'wait',
    `echo $$ > ${folder}/child; trap '' TERM; echo ready; while true; do sleep 600; done`,
    {
      stop: { signal: 'SIGTERM', graceSeconds: 0.1 },
    },
  );
  await declare(
    'keyed',
    `echo "with $API_TOKEN"; echo "{\\"length\\": \${#API_TOKEN}}" > $HOLDFAST_RESULT`,
    { secrets: { API_TOKEN: { secret: 'cmd-key' } } },
  );
  await declare('changed', 'echo one');
  await declare(
    'environment',
    'env > $HOME/all; tr "\\0" "\\n" < /proc/$$/environ >> $HOME/all; cat $HOME/all',
  );
  runner = await startRunnerHere();
  await polling();
});
afterAll(async () => {
  await runner.stop();
  await app.stop();
  await rm(folder, { recursive: true, force: true });
});

const run = (type: string, payload: object = {}, headers: Record<string, string> = WAIT) =>
  root.post<JobRecord>('/api/jobs', { type, payload }, headers).expect(201);
const ended = (id: string) => root.get<JobRecord>(`/api/jobs/${id}`, WAIT).expect(200);
const messages = ({ logs }: JobRecord) => logs.map(({ message }) => message);

const hasLine = (id: string, line: string) =>
  eventually(
    () => root.get<JobRecord>(`/api/jobs/${id}`).expect(200),
    (job) => messages(job).includes(line),
  );

/** Starts the type that waits; returns its job and the process of its command. */
async function startWaiting() {
  await rm(path.join(folder, 'child'), { force: true });
  const { id } = await run('cmd.wait', {}, {});
  await hasLine(id, 'ready');
  return { id, child: Number(await readFile(path.join(folder, 'child'), 'utf8')) };
}

test('a declared command gets a named secret of its pool, and its log does not have it', async () => {
  expect(await run('cmd.keyed')).toMatchObject({
    status: 'failed',
    error: { code: 'secret_missing' },
  });
  const value = 'canary of the pool';
  await root.post('/api/secrets', { name: 'cmd-key', value, pools: [POOL] }).expect(201);
  const job = await run('cmd.keyed');
  expect(job).toMatchObject({ status: 'succeeded', result: { length: value.length } });
  expect(messages(job)).toContain('with ********');
});

test('a declared command runs as a job, with log, progress, result and failure', async () => {
  const job = await run('cmd.hello', { host: 'a' });
  expect(job).toMatchObject({
    status: 'succeeded',
    result: { host: 'a' },
    progress: { percent: 50, message: 'half' },
  });
  expect(messages(job)).toContain(`Hello ${process.getuid?.()}`);
  const failed = await run('cmd.hello', { host: 'fail' });
  expect(failed).toMatchObject({ status: 'failed', error: { code: 'busy' }, attempts: 1 });
});

test('a cancelled job is cancelled when its processes have ended', async () => {
  const { id, child } = await startWaiting();
  await root.post(`/api/jobs/${id}/cancel`).expect(202);
  expect(await ended(id)).toMatchObject({ status: 'cancelled' });
  expect(await isRunning(child)).toBe(false);
});

test('a command has neither the token of its runner nor what opens the database', async () => {
  const text = messages(await run('cmd.environment')).join('\n');
  expect(text).toMatch(/^HOLDFAST_PAYLOAD=/m);
  for (const secret of [token, app.env.DATABASE_URL, app.env.HOLDFAST_MASTER_KEYS])
    expect(text).not.toContain(secret);
  expect(text).not.toMatch(/DATABASE_URL|MASTER_KEYS|RUNNER_TOKEN/);
});

test('a changed file counts from the next job on, without a restart', async () => {
  const first = await run('cmd.changed');
  expect(messages(first)).toContain('one');
  await declare('changed', 'echo two');
  const second = await run('cmd.changed');
  expect(messages(second)).toContain('two');
  expect(second.typeDigest).not.toBe(first.typeDigest);
});

test('a job whose file is removed keeps no slot, and runs when the file is there again', async () => {
  await declare('removed', 'echo back');
  // A changed file is announced immediately, with all others.
  await declare('changed', 'echo three');
  await run('cmd.changed');
  await rm(path.join(folder, 'removed.yaml'));
  const { id } = await run('cmd.removed', {}, {});
  await eventually(
    () => app.deps.db('jobs').where({ id }).first('slot', 'status'),
    ({ slot, status }) => slot === null && status === 'queued',
  );
  expect(await root.get<JobRecord>(`/api/jobs/${id}`).expect(200)).toMatchObject({
    waitingFor: { reason: 'not_announced' },
  });
  await declare('removed', 'echo back');
  await declare('changed', 'echo four');
  await run('cmd.changed');
  expect(messages(await ended(id))).toContain('back');
});

test('when a runner is killed, its command is killed, and another runner makes the next attempt', async () => {
  await runner.stop();
  await declare(
    'once',
    `echo $$ > ${folder}/child-$HOLDFAST_ATTEMPT; echo ready
     [ $HOLDFAST_ATTEMPT = 2 ] || exec sleep 600`,
    { retry: { maxAttempts: 2, initialIntervalSeconds: 0.05 } },
  );
  const main = path.join(import.meta.dirname, '../../../processes/main.ts');
  const killed = spawn(process.execPath, [main], {
    env: { PATH: process.env.PATH, HOLDFAST_ROLE: 'runner', ...runnerEnv('killed') },
    stdio: 'ignore',
  });
  await eventually(
    () => root.get<{ items: { name: string }[] }>('/api/job-types').expect(200),
    ({ items }) => items.some(({ name }) => name === 'cmd.once'),
  );
  // The health check of the image, which asks for no port.
  const health = path.join(import.meta.dirname, '../../../processes/cli/health.ts');
  const env = { HOLDFAST_ROLE: 'runner', HOLDFAST_PORT: '8080', ...runnerEnv('killed') };
  expect(await once(spawn(process.execPath, [health], { env }), 'exit')).toEqual([0, null]);
  const { id } = await run('cmd.once', {}, {});
  await hasLine(id, 'ready');
  const child = Number(await readFile(path.join(folder, 'child-1'), 'utf8'));
  killed.kill('SIGKILL');
  await once(killed, 'exit');
  await eventually(
    () => isRunning(child),
    (is) => !is,
  );
  runner = await startRunnerHere();
  expect(await ended(id)).toMatchObject({ status: 'succeeded', attempts: 2 });
});

test('a runner that stops ends its commands, and the job is interrupted', async () => {
  const { id, child } = await startWaiting();
  await runner.stop();
  expect(await isRunning(child)).toBe(false);
  expect(await ended(id)).toMatchObject({ status: 'failed', error: { code: 'interrupted' } });
  runner = await startRunnerHere();
  await polling();
  expect(await run('cmd.hello')).toMatchObject({ status: 'succeeded' });
});
