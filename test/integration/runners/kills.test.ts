import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { mkdir, rm, writeFile } from 'node:fs/promises';
import path from 'node:path';
import pg from 'pg';
import type { JobRecord } from '../../../api/jobs/schemas.ts';
import { checkJobs } from '../../../dev/kills/check.ts';
import { holdFile, killedCommand, markOf } from '../../../dev/kills/command.ts';
import { processesWith, shims } from '../../../dev/kills/processTable.ts';
import { jobWorkflowId } from '../../../domain/dispatch/workflowIds.ts';
import { startApp, type TestApp } from '../../support/app.ts';
import { createArchiveFolder } from '../../support/backups.ts';
import { eventually } from '../../support/eventually.ts';
import { launchProcess, startProcess, type TestProcess } from '../../support/processes.ts';
import { replaceableWorker } from '../../support/replaceableWorker.ts';
import { createRunnerSecret } from '../../support/runner.ts';
import {
  SIDES,
  startGatedApi,
  STEPS,
  type Side,
  type Step,
} from '../../support/runner/gatedApi.ts';
import { stopUpdates } from '../../support/stopPoints.ts';
import { admin, createUser } from '../../support/users.ts';

/**
 * One kill meets attempts at each of their steps. A runner is a process of its own, and so are the first
 * API that it uses and the worker; the API in this process is the one that lives.
 */
const POOL = 'kills';
const TYPE = 'kills.repeated';
const LEASE_MS = 5_000;

let archives: Awaited<ReturnType<typeof createArchiveFolder>>;
let app: TestApp;
let gated: Awaited<ReturnType<typeof startGatedApi>>;
let killedApi: TestProcess;
let runner: ReturnType<typeof launchProcess>;
let token: string;
let types: string;
let created = 0;
const worker = replaceableWorker(() => ({ ...app.env, HOLDFAST_ROLE: 'worker' }));

const declaration = () => ({
  apiVersion: 'holdfast/v1',
  ...{ name: TYPE, summary: 'Is killed', pool: POOL, access: 'open', payload: { type: 'object' } },
  lostAfterSeconds: LEASE_MS / 1_000,
  run: killedCommand(types),
  exitCodes: { '75': { code: 'busy', retryable: true } },
  retry: { maxAttempts: 10, initialIntervalSeconds: 0.1, backoffCoefficient: 1 },
});

function startRunner(work: string): void {
  runner = launchProcess({
    HOLDFAST_ROLE: 'runner',
    HOLDFAST_URL: gated.url,
    HOLDFAST_RUNNER_TOKEN: token,
    HOLDFAST_RUNNER_POOL: POOL,
    HOLDFAST_RUNNER_TYPES: types,
    HOLDFAST_RUNNER_FOLDER: path.join(archives.folder, work),
    HOLDFAST_RUNNER_SLOTS: '30',
    TEMPORAL_ADDRESS: app.env.TEMPORAL_ADDRESS ?? '',
  });
  // A runner does not listen.
  runner.ready.catch(() => undefined);
}

beforeAll(async () => {
  archives = await createArchiveFolder();
  types = path.join(archives.folder, 'types');
  await mkdir(types);
  await writeFile(path.join(types, `${TYPE}.yaml`), JSON.stringify(declaration()));
  app = await startApp({ ...archives.env, HOLDFAST_ROLE: 'api' });
  [killedApi] = await Promise.all([
    startProcess({ ...app.env, HOLDFAST_ROLE: 'api', HOLDFAST_PORT: '0' }),
    worker.start(),
  ]);
  gated = await startGatedApi(killedApi.base);
  await createUser(app, 'viewer');
  token = await createRunnerSecret(app, POOL);
  await admin(app)
    .put(`/api/pools/${POOL}`, { acceptTypes: ['kills.*'], tenantSharePercent: 100 })
    .expect(200);
  startRunner('first');
  await eventually(
    () => admin(app).get<{ items: { name: string }[] }>('/api/job-types').expect(200),
    ({ items }) => items.some(({ name }) => name === TYPE),
  );
});
afterAll(async () => {
  await runner.kill();
  await worker.stop();
  await gated.stop();
  await app.stop();
  await archives.remove();
});

async function create(payload: object = {}): Promise<string> {
  created++;
  const { id } = await admin(app).post<JobRecord>('/api/jobs', { type: TYPE, payload }).expect(201);
  return id;
}

/** Creates a job for each step and side, whose request or answer will be held, by `step side`. */
async function createHeld(): Promise<Record<string, string>> {
  const jobs: Record<string, string> = {};
  for (const step of STEPS)
    for (const side of SIDES) {
      const id = await create();
      jobs[`${step} ${side}`] = id;
      gated.hold(id, step, side);
    }
  return jobs;
}

/** The attempts of each job after its end, and what is wrong with all jobs until now. */
async function outcome(jobs: Readonly<Record<string, string>>) {
  const attempts: Record<string, number> = {};
  for (const [name, id] of Object.entries(jobs)) {
    const job = await eventually(
      () => admin(app).get<JobRecord>(`/api/jobs/${id}`).expect(200),
      ({ status }) => ['succeeded', 'failed', 'cancelled'].includes(status),
      { withinMs: 40_000 },
    );
    attempts[name] = job.attempts;
    await eventually(
      () =>
        app.deps.temporal.call(20_000, ({ workflow }) =>
          workflow.getHandle(jobWorkflowId(id)).describe(),
        ),
      (run) => run.status.name === 'COMPLETED',
    );
  }
  const client = new pg.Client({ connectionString: app.databaseUrl });
  await client.connect();
  const { problems } = await checkJobs(client, types, created);
  await client.end();
  return { attempts, problems };
}

const noProcessIsLeft = () =>
  eventually(
    () => processesWith(markOf(types)),
    (ids) => ids.length === 0,
  );

const allOf = (attempts: (step: Step, side: Side) => number): Record<string, number> =>
  Object.fromEntries(
    STEPS.flatMap((step) => SIDES.map((side) => [`${step} ${side}`, attempts(step, side)])),
  );

test('an API that is killed costs no attempt, whatever it was asked', async () => {
  const goOn = gated.pauseBegins();
  const jobs = await createHeld();
  const within: Record<string, string> = {};
  for (const step of STEPS) within[step] = await create();
  const url = app.databaseUrl;
  const stops = [
    await stopUpdates(url, 'jobs', {
      begin: `NEW.id = '${within.begin}' AND OLD.status = 'queued' AND NEW.status = 'running'`,
      end: `NEW.id = '${within.end}' AND NEW.status = 'succeeded'`,
    }),
    await stopUpdates(url, 'remote_attempts', {
      lines: `NEW.job_id = '${within.lines}' AND NEW.lines_received > OLD.lines_received`,
    }),
    await stopUpdates(
      url,
      'job_artifacts',
      { artifacts: `NEW.job_id = '${within.artifacts}'` },
      { on: 'INSERT' },
    ),
  ];
  goOn();
  for (const stop of stops) for (const name of stop.names) await stop.untilStopped(name);
  await gated.untilHeld();
  await killedApi.kill();
  gated.forwardTo(app.client.base);
  gated.drop();
  for (const stop of stops) await stop.release();
  for (const stop of stops) await stop.remove();
  expect(await outcome({ ...jobs, ...within })).toEqual({
    attempts: { ...allOf(() => 1), begin: 1, lines: 1, artifacts: 1, end: 1 },
    problems: [],
  });
});

test('lines wait for an API that is away longer than the lease', async () => {
  const goOn = gated.pauseBegins();
  const jobs = { one: await create() };
  gated.hold(jobs.one, 'lines', 'before');
  goOn();
  await gated.untilHeld();
  await gated.awayFor(LEASE_MS + 1_000);
  expect(await outcome(jobs)).toEqual({ attempts: { one: 1 }, problems: [] });
});

test('a worker that is killed costs no attempt', async () => {
  const goOn = gated.pauseBegins();
  const jobs = { ...(await createHeld()), retried: await create({ failFirst: true }) };
  goOn();
  await gated.untilHeld();
  await worker.kill();
  gated.pass();
  const queued = await create();
  await worker.start();
  expect(await outcome({ ...jobs, queued })).toEqual({
    attempts: { ...allOf(() => 1), retried: 2, queued: 1 },
    problems: [],
  });
});

test('a shim that is killed takes its command with it, and costs one attempt', async () => {
  await writeFile(holdFile(types), '');
  const jobs = { one: await create(), other: await create() };
  const found = await eventually(
    () => shims(markOf(types)),
    ({ length }) => length === 2,
  );
  for (const id of found) process.kill(id, 'SIGKILL');
  await rm(holdFile(types));
  expect(await outcome(jobs)).toEqual({ attempts: { one: 2, other: 2 }, problems: [] });
  await noProcessIsLeft();
});

test('a runner that is killed costs the attempts that have started and have not ended', async () => {
  const goOn = gated.pauseBegins();
  const jobs = await createHeld();
  goOn();
  await gated.untilHeld();
  await runner.kill();
  await noProcessIsLeft();
  gated.drop();
  startRunner('second');
  const costsNone = ['begin before', 'end after'];
  expect(await outcome(jobs)).toEqual({
    attempts: allOf((step, side) => (costsNone.includes(`${step} ${side}`) ? 1 : 2)),
    problems: [],
  });
});
