import { afterAll, beforeAll, expect, test } from '@jest/globals';
import type { JobRecord } from '../../../api/jobs/schemas.ts';
import type { PoolRecord, RunnerRecord } from '../../../api/runners/schemas.ts';
import { startApp, type TestApp } from '../../support/app.ts';
import type { TestClient } from '../../support/client.ts';
import { eventually } from '../../support/eventually.ts';
import { attemptCalls, createHandRunner } from '../../support/runner.ts';
import { admin, createUser, type Page } from '../../support/users.ts';

let app: TestApp;
let root: TestClient;
beforeAll(async () => {
  app = await startApp();
  root = admin(app);
  await createUser(app, 'viewer');
});
afterAll(() => app.stop());

const createJob = (type: string) =>
  root.post<JobRecord>('/api/jobs', { type, payload: {} }).expect(201);
const readJob = (id: string) => root.get<JobRecord>(`/api/jobs/${id}`).expect(200);
const updateJob = (id: string, values: object) => app.deps.db('jobs').where({ id }).update(values);

type HandRunner = Awaited<ReturnType<typeof createHandRunner>>;
type Obstruct = (name: string, hand: HandRunner, id: string) => Promise<unknown>;

/** What keeps a job from starting until someone acts, and a job that starts without that. */
const OBSTACLES: Record<string, [isReported: boolean, Obstruct]> = {
  type_disabled: [
    true,
    async (name) => {
      await root.post(`/api/job-types/${name}/disable`).expect(200);
      await app.deps.jobTypes.refresh();
    },
  ],
  not_accepted: [
    true,
    async (_name, hand) => {
      await root.put('/api/pools/hand', { acceptTypes: [] }).expect(200);
      await hand.announce('changed', { payload: { type: 'object', required: ['more'] } });
    },
  ],
  not_announced: [true, (_name, hand) => hand.announce('other', { name: 'hand.other' })],
  other_digest: [
    true,
    (_name, _hand, id) => updateJob(id, { source_kind: 'approval', type_digest: 'of before' }),
  ],
  no_slot: [false, () => Promise.resolve()],
};

test.each(Object.entries(OBSTACLES))(
  'a job that waits for the reason %s is an event only if someone must act',
  async (reason, [isReported, obstruct]) => {
    const name = `hand.${reason.replaceAll('_', '-')}`;
    const hand = await createHandRunner(app, name);
    const { id } = await createJob(name);
    await obstruct(name, hand, id);
    await updateJob(id, { created_at: new Date(Date.now() - 600_000) });
    expect((await readJob(id)).waitingFor).toMatchObject({ reason });
    await app.deps.housekeeping.run(AbortSignal.timeout(20_000));
    const events = await app.deps.db('events').where({ subject_id: id, type: 'job.waiting' });
    expect(events).toHaveLength(isReported ? 1 : 0);
  },
);

test('a runner that does not reach Temporal does not count until it does', async () => {
  const name = 'hand.without-temporal';
  const hand = await createHandRunner(app, name);
  const { id } = await createJob(name);
  const alive = (more: object) =>
    hand.client
      .post('/api/runner/alive', { runnerId: hand.runnerId, pool: 'hand', ...more })
      .expect(200);
  const state = async () => {
    const { items } = await root.get<Page<RunnerRecord>>('/api/runners?pool=hand').expect(200);
    const found = items.find((each) => Object.hasOwn(each.types, name));
    const { slots } = await root.get<PoolRecord>('/api/pools/hand').expect(200);
    const { waitingFor } = await readJob(id);
    return [found?.alive, found?.reachesTemporal, slots, waitingFor?.reason];
  };
  const { slots } = await root.get<PoolRecord>('/api/pools/hand').expect(200);
  expect(await state()).toEqual([true, true, slots, 'no_slot']);
  await alive({ reachesTemporal: false });
  expect(await state()).toEqual([
    true,
    false,
    slots - 5,
    slots === 5 ? 'no_runner' : 'not_announced',
  ]);
  await updateJob(id, { created_at: new Date(Date.now() - 600_000) });
  await app.deps.housekeeping.run(AbortSignal.timeout(20_000));
  const events = await app.deps.db('events').where({ subject_id: id, type: 'job.waiting' });
  expect(events).toHaveLength(1);
  await alive({});
  expect(await state()).toEqual([true, true, slots, 'no_slot']);
});

/** How the first attempt of a job ends, so that another one follows. */
const ENDS = {
  'failed and is repeated': { failure: { code: 'busy', message: 'x', retryable: true } },
  'was interrupted': { failure: { code: 'interrupted', message: 'x', retryable: true } },
};

test.each(Object.entries(ENDS))(
  'a job whose attempt %s waits for the next one like a queued one, and is an event each time',
  async (title, end) => {
    const name = `hand.${title.replaceAll(' ', '-')}`;
    const retry = { maxAttempts: 3, initialIntervalSeconds: 1 };
    const hand = await createHandRunner(app, name, { retry });
    const { id } = await createJob(name);
    const countEvents = async () => {
      await app.deps.housekeeping.run(AbortSignal.timeout(20_000));
      return (await app.deps.db('events').where({ subject_id: id, type: 'job.waiting' })).length;
    };
    const dueAt = new Date(Date.now() - 600_000);
    const setDue = (at: Date) =>
      app.deps.db.raw(
        `UPDATE remote_attempts SET answer = (answer::jsonb || jsonb_build_object('dueAt', ?::timestamptz))::json
         WHERE job_id = ?`,
        [at, id],
      );
    await updateJob(id, { waiting_reported_at: new Date(Date.now() - 900_000) });
    await hand.granted(id);
    const { attemptToken } = await hand.begin(id, 'run-1').expect(200);
    await attemptCalls(hand.client, id, attemptToken).end(end).expect(200);
    await setDue(new Date(Date.now() + 60_000));
    expect((await readJob(id)).waitingFor).toBeNull();
    await setDue(dueAt);
    expect((await readJob(id)).waitingFor).toMatchObject({
      reason: 'no_slot',
      since: dueAt.toISOString(),
    });
    expect(await countEvents()).toBe(0);
    await hand.leave();
    expect(await readJob(id)).toMatchObject({
      status: 'running',
      waitingFor: { reason: 'not_announced' },
    });
    expect([await countEvents(), await countEvents()]).toEqual([1, 1]);
    const other = await createHandRunner(app, name, { retry });
    await other.begin(id, 'run-1').expect(200);
    await other.leave();
    expect([(await readJob(id)).waitingFor, await countEvents()]).toEqual([null, 1]);
  },
);

test('a running job whose runner is lost says so, and for what it waits', async () => {
  const hand = await createHandRunner(app, 'hand.lost', { retry: { maxAttempts: 3 } });
  const { id } = await createJob('hand.lost');
  await hand.granted(id);
  await hand.begin(id, 'run-1').expect(200);
  expect((await readJob(id)).waitingFor).toBeNull();
  await eventually(
    () => app.deps.db('outbox').where({ workflow_id: `job:${id}` }),
    (tasks) => tasks.length === 0,
  );
  const leasedUntil = new Date(Date.now() - 60_000);
  await app.deps.db('remote_attempts').where({ job_id: id }).update({ leased_until: leasedUntil });
  await hand.leave();
  const lostLines = ({ logs }: JobRecord) =>
    logs.filter(({ message }) => message === 'The runner of attempt 1 was lost');
  for (let round = 0; round < 2; round++) {
    await updateJob(id, { checked_at: new Date(0) });
    await app.deps.reconcile.reconcileJobs(AbortSignal.timeout(20_000));
    const job = await readJob(id);
    expect(job).toMatchObject({
      status: 'running',
      waitingFor: { reason: 'not_announced', since: leasedUntil.toISOString() },
    });
    expect(lostLines(job)).toHaveLength(1);
  }
  const other = await createHandRunner(app, 'hand.lost', { retry: { maxAttempts: 3 } });
  expect(await other.begin(id, 'run-1').expect(200)).toMatchObject({ attempt: 2 });
  const job = await readJob(id);
  expect([job.waitingFor, lostLines(job).length]).toEqual([null, 1]);
});
