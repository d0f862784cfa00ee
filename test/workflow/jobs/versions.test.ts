import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { Type } from 'typebox';
import { defineJobType, type JobType, type Lane } from '../../../domain/jobs/jobType.ts';
import type { ApprovalRecord } from '../../../api/approvals/schemas.ts';
import type { JobRecord } from '../../../api/jobs/schemas.ts';
import type { ScheduleRecord } from '../../../api/schedules/schemas.ts';
import { approve, createRequest } from '../../support/approvals.ts';
import { startApp, startAppOn, type TestApp } from '../../support/app.ts';
import { eventually } from '../../support/eventually.ts';
import { listRuns } from '../../support/schedules.ts';
import { admin } from '../../support/users.ts';

/** A type that a next version adds. */
const nextType = (lane: Extract<Lane, 'inline' | 'activity'>) =>
  defineJobType({
    name: `test.next_${lane}`,
    summary: 'Is new in this version',
    payload: Type.Object({}),
    lane,
    timeoutMs: 5_000,
    run: () => Promise.resolve({ done: true }),
  });

/** A type whose attempts run until the test ends them, or their worker stops. */
let endHeld: () => void = () => undefined;
const heldType = (lane: Extract<Lane, 'inline' | 'activity'>) =>
  defineJobType({
    name: `test.held_${lane}`,
    summary: 'Runs until it is ended',
    payload: Type.Object({}),
    lane,
    timeoutMs: 20_000,
    run: (_payload, { signal }) =>
      new Promise((resolve, reject) => {
        endHeld = () => resolve({});
        signal.addEventListener('abort', () => reject(signal.reason as Error));
      }),
  });

const LANES = ['inline', 'activity'] as const;
const HELD = LANES.map(heldType);
const NEXT = LANES.map(nextType);

/** A process of the former version, and the API of the next one, on the same database and task queue. */
let former: TestApp;
let api: TestApp;
const started: TestApp[] = [];
const startNext = async (role: string, extraJobTypes: readonly JobType[] = [...HELD, ...NEXT]) => {
  const { HOLDFAST_TASK_QUEUE = '' } = former.env;
  const env = {
    HOLDFAST_ROLE: role,
    HOLDFAST_TASK_QUEUE,
    HOLDFAST_STOP_GRACE_MS: '50',
    HOLDFAST_DISPATCH_GRACE_MS: '200',
  };
  const app = await startAppOn(former.databaseUrl, env, { extraJobTypes });
  started.push(app);
  return app;
};
const stop = async (app: TestApp) => {
  started.splice(started.indexOf(app), 1);
  await app.stop();
};
beforeAll(async () => {
  former = await startApp({ HOLDFAST_DISPATCH_GRACE_MS: '200' });
  api = await startNext('api');
});
afterAll(async () => {
  await Promise.all(started.map((app) => app.stop()));
  await former.stop();
});

const create = (type: string, retryPolicy = {}) =>
  api.client.post<JobRecord>('/api/jobs', { type, payload: {}, retryPolicy }).expect(201);
const read = (id: string) => api.client.get<JobRecord>(`/api/jobs/${id}`).expect(200);
const until = (id: string, isReached: (job: JobRecord) => boolean) =>
  eventually(() => read(id), isReached);

test('jobs of a type that a worker does not know wait for one that does, without an attempt', async () => {
  const jobs = await Promise.all(NEXT.map(({ name }) => create(name)));
  const schedule = await api.client
    .post<ScheduleRecord>('/api/schedules', {
      name: 'next',
      cronExpression: '* * * * *',
      jobType: 'test.next_inline',
      payload: {},
    })
    .expect(201);
  for (const { id } of jobs) {
    const waiting = await until(id, ({ error }) => error?.code === 'unknown_job_type');
    expect(waiting).toMatchObject({ status: 'queued', attempts: 0, startedAt: null });
    expect(waiting.logs.map(({ message }) => message)).toEqual([
      expect.stringContaining('waiting for one that knows it'),
    ]);
  }
  // A run of a schedule that is due is left to the next version, too.
  const dueAt = new Date(Math.floor(Date.now() / 60_000) * 60_000);
  await api.deps
    .db('schedules')
    .where({ id: schedule.id })
    .update({ next_due_at: dueAt, created_at: new Date(dueAt.getTime() - 60_000) });
  expect(await former.deps.runner.fireOccurrence(schedule.id, dueAt)).toEqual({
    outcome: 'left_to_others',
  });

  const worker = await startNext('worker');
  // It may have caught up by itself already.
  const { outcome } = await worker.deps.runner.fireOccurrence(schedule.id, dueAt);
  expect(['fired', 'already_handled']).toContain(outcome);
  const runs = await listRuns(api.client, schedule.id);
  expect(runs.find((run) => run.dueAt === dueAt.toISOString())?.outcome).toBe('fired');
  for (const { id } of jobs) {
    const done = await until(id, ({ status }) => status === 'succeeded');
    expect(done).toMatchObject({ attempts: 1, error: null, result: { done: true } });
    expect(done.logs.filter(({ message }) => message.includes('waiting'))).toHaveLength(1);
    // The first one was done beside the worker that does not know it.
    await former.deps.stopWorkers();
  }
  await stop(worker);
});

test('an approved request runs a job of a type that the worker of its workflow does not know', async () => {
  const root = admin(api);
  const old = await startNext('worker', HELD);
  const { id } = await createRequest(root, { jobType: 'test.next_inline', jobPayload: {} });
  await approve(api.client.as({ actor: 'ann', roles: 'approver' }), id).expect(200);
  // What a worker of the next version does while the workflow is in the memory of an old one.
  await api.deps.approvals.execution.createBoundJob(id);
  expect(await old.deps.approvals.execution.loadState(id)).toEqual({
    phase: 'running',
    job: null,
  });
  const worker = await startNext('worker');
  await stop(old);
  const { execution } = await eventually(
    () => root.get<ApprovalRecord>(`/api/workflows/${id}`).expect(200),
    (request) => request.execution === 'succeeded',
    { withinMs: 60_000 },
  );
  expect(execution).toBe('succeeded');
  await stop(worker);
}, 90_000);

test.each(LANES)(
  'an attempt of the lane %s that an orderly stop interrupts is not counted',
  async (lane) => {
    const retryPolicy = { maxAttempts: 2, initialIntervalSeconds: 0.05 };
    let worker = await startNext('all');
    await eventually(
      () => worker.deps.isWorkerRunning(),
      (isRunning) => isRunning,
    );
    const { id } = await worker.client
      .post<JobRecord>('/api/jobs', { type: `test.held_${lane}`, payload: {}, retryPolicy })
      .expect(201);
    for (let stops = 1; stops <= 2; stops++) {
      await until(id, ({ status, attempts }) => status === 'running' && attempts === stops);
      await stop(worker);
      expect(await read(id)).toMatchObject({ status: 'running', interruptions: stops });
      worker = await startNext('all');
    }
    await until(id, ({ attempts }) => attempts === 3);
    endHeld();
    const done = await until(id, ({ status }) => status === 'succeeded');
    expect(done).toMatchObject({ attempts: 3, interruptions: 2 });
    await stop(worker);
  },
);
