import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { freePort } from '../../../dev/freePort.ts';
import type { JobRecord } from '../../../api/jobs/schemas.ts';
import {
  approve,
  changeRequest,
  createPrefix,
  createRequest,
  echoJob,
  eventTypesOf,
  readRequest,
  reject,
  sleepJob,
  untilExecution,
  untilStatus,
} from '../../support/approvals.ts';
import { startApp, testEnv, type TestApp } from '../../support/app.ts';
import { createClient, type ProblemBody, type TestClient } from '../../support/client.ts';
import { createDatabase } from '../../support/database.ts';
import { killRounds } from '../../support/effort.ts';
import { eventually } from '../../support/eventually.ts';
import { startCrashingWorkers } from '../../support/crashingWorkers.ts';
import { startProcess } from '../../support/processes.ts';
import { replaceableWorker } from '../../support/replaceableWorker.ts';

/** The API runs in this process, the worker in a process that the tests kill and replace. */
let api: TestApp;
const worker = replaceableWorker(() => ({ ...api.env, HOLDFAST_ROLE: 'worker' }));
let requester: TestClient;
let decider: TestClient;
/** Written by a process that was killed before anything reached Temporal. */
let unstarted: { approval: string; job: string };
beforeAll(async () => {
  const database = await createDatabase();
  const env = testEnv(database.url, { HOLDFAST_ROLE: 'api' });
  unstarted = await createWithoutTemporal(env);
  api = await startApp(env, { database });
  requester = api.client.as({ actor: 'asker', roles: 'operator' });
  decider = api.client.as({ actor: 'decider', roles: 'approver' });
  await worker.start();
});
afterAll(async () => {
  await worker.stop();
  await api.stop();
});

/** Approves a request and creates a job in a process that does not reach Temporal, and kills it. */
async function createWithoutTemporal(env: Record<string, string>) {
  const unreachable = `127.0.0.1:${await freePort(0)}`;
  const first = await startProcess({ ...env, TEMPORAL_ADDRESS: unreachable });
  const as = (actor: string, roles: string) => createClient(first.base).as({ actor, roles });
  const asker = as('asker', 'operator');
  const { id: approval } = await createRequest(asker, echoJob);
  expect(await approve(as('decider', 'approver'), approval).expect(200)).toMatchObject({
    status: 'approved',
    execution: 'queued',
  });
  const { id: job } = await asker
    .post<JobRecord>('/api/jobs', { type: 'core.echo', payload: { kept: true } })
    .expect(201);
  await first.kill();
  return { approval, job };
}

/** A new worker needs a while to take over the workflows of a killed one. */
const WITHIN_MS = 45_000;

const readJob = (jobId: string | null): Promise<JobRecord> =>
  requester.get<JobRecord>(`/api/jobs/${String(jobId)}`).expect(200);
const untilJobRunning = (jobId: string | null) =>
  eventually(
    () => readJob(jobId),
    ({ status }) => status === 'running',
  );
const boundJobs = (id: string) =>
  api.deps.db<{ id: string; source_kind: string; source_id: string }>('jobs').where({
    source_kind: 'approval',
    source_id: id,
  });
const findPrefixes = (cidr: string) =>
  api.deps.db<{ id: string; cidr: string }>('prefixes').where({ cidr });
const isoIn = (ms: number) => new Date(Date.now() + ms).toISOString();

/** Creates and approves a request. */
async function createApproved(body: object): Promise<string> {
  const { id } = await createRequest(requester, body);
  await approve(decider, id).expect(200);
  return id;
}

/** Waits until a request has succeeded, and checks that its job was created once. */
async function expectExecutedOnce(id: string) {
  const finished = await untilExecution(requester, id, 'succeeded', WITHIN_MS);
  expect(await boundJobs(id)).toHaveLength(1);
  const types = await eventTypesOf(api, id);
  for (const type of ['workflow.approved', 'workflow.executed'])
    expect(types.filter((each) => each === type)).toEqual([type]);
  return finished;
}

/** Locks the rows of requests, so that whatever writes one of them waits until `release`. */
async function lockRequests() {
  const trx = await api.deps.db.transaction();
  let locked = 0;
  const countBlocked = async () => {
    const { rows }: { rows: { n: number }[] } = await api.deps.db.raw(
      "SELECT count(*) AS n FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database()",
    );
    return rows[0]?.n ?? 0;
  };
  return {
    async lock(id: string): Promise<void> {
      await trx('approvals').where({ id }).forUpdate();
      locked += 1;
    },
    /** Resolves when a writer waits for each of them. */
    untilAllBlocked: () => eventually(countBlocked, (n) => n === locked, { withinMs: WITHIN_MS }),
    release: () => trx.rollback(),
  };
}

test('a crash before anything reaches Temporal loses no start of a workflow, and no decision', async () => {
  const done = await requester
    .get<JobRecord>(`/api/jobs/${unstarted.job}`, { prefer: 'wait=40' })
    .expect(200);
  expect(done).toMatchObject({ status: 'succeeded', attempts: 1, result: { kept: true } });
  const { jobId } = await expectExecutedOnce(unstarted.approval);
  expect(await readJob(jobId)).toMatchObject({ status: 'succeeded', attempts: 1 });
});

/** One kill meets requests at all of these points. */
describe('when a worker is killed and another one starts', () => {
  let root: TestClient;
  let waiting: Awaited<ReturnType<typeof createWaiting>>;
  let undecided: Awaited<ReturnType<typeof createUndecided>>;
  let stopped: Awaited<ReturnType<typeof createStopped>>;
  let createdBefore: string;
  let reconciled: string;
  let stale: { differs: string; invalid: string; prefixId: string };

  /** A request that is decided in time although no worker runs then, and one whose time has not come. */
  async function createWaiting() {
    const halfAnHour = isoIn(30 * 60_000);
    const inTime = await createRequest(requester, { ...echoJob, expiresAt: halfAnHour });
    const later = await createRequest(requester, { ...echoJob, executeAt: halfAnHour });
    return [inTime.id, later.id] as const;
  }

  /** A request that expires when no worker runs. */
  async function createUndecided() {
    const expiresAt = isoIn(2_500);
    const undecided = await createRequest(requester, { ...echoJob, expiresAt });
    await eventually(
      () => api.deps.describeWorkflow(undecided.workflowId),
      (state) => state.found,
    );
    return { id: undecided.id, expiresAt };
  }

  async function decideInTime(ids: readonly string[]): Promise<void> {
    for (const id of ids)
      expect(await approve(decider, id).expect(200)).toMatchObject({
        status: 'approved',
        execution: 'queued',
      });
    // One hour passes. The content hash covers executeAt.
    await api.deps.db.raw(
      `UPDATE approvals SET created_at = created_at - interval '1 hour',
         closed_at = closed_at - interval '1 hour', expires_at = expires_at - interval '1 hour'
       WHERE id = ANY(?)`,
      [[...ids]],
    );
  }

  async function expire({ id, expiresAt }: typeof undecided): Promise<void> {
    await eventually(
      () => new Date().toISOString(),
      (now) => now > expiresAt,
    );
    const problem = await approve<ProblemBody>(decider, id).expect(409);
    expect(problem.code).toBe('approval_closed');
  }

  /** Requests that stop at the points at which the worker is killed. */
  async function createStopped(locks: Awaited<ReturnType<typeof lockRequests>>) {
    const soon = isoIn(3_000);
    const expiring = (await createRequest(requester, { ...echoJob, expiresAt: soon })).id;
    await locks.lock(expiring);
    const creating = await createApproved({ ...echoJob, executeAt: soon });
    await locks.lock(creating);
    const applied = await createApproved(createPrefix('10.9.0.0/16'));
    await untilExecution(requester, applied, 'running', WITHIN_MS);
    await locks.lock(applied);
    await locks.untilAllBlocked();
    const [prefix] = await findPrefixes('10.9.0.0/16');
    const running = await createApproved(sleepJob(2_500));
    const { jobId } = await untilExecution(requester, running, 'running', WITHIN_MS);
    await untilJobRunning(jobId);
    return { expiring, creating, applied, running, prefixId: prefix?.id };
  }

  /** A request whose job exists, which is all that a worker did before it crashed. */
  async function createWithJob(body: object): Promise<string> {
    const id = await createApproved(body);
    await api.deps.approvals.execution.createBoundJob(id);
    expect(await readRequest(requester, id)).toMatchObject({ execution: 'running' });
    return id;
  }

  /** A request whose job the reconciler starts. */
  async function createReconciled(): Promise<string> {
    const id = await createWithJob(sleepJob(2_000));
    const [job] = await boundJobs(id);
    await api.deps
      .db('jobs')
      .where({ id: job?.id })
      .update({ checked_at: new Date(0) });
    await api.deps.reconcile.reconcileJobs(AbortSignal.timeout(5_000));
    await eventually(
      () => api.deps.describeWorkflow(`job:${String(job?.id)}`),
      (state) => state.found,
    );
    return id;
  }

  /** Requests whose records change between the creation of the job and its writes. */
  async function createStale() {
    const createRecord = (cidr: string) =>
      root.post<{ id: string }>('/api/inventory/prefixes', { cidr }).expect(201);
    const prefix = await createRecord('10.8.0.0/16');
    const differs = await createWithJob(
      changeRequest(
        ['update', 'prefixes', { id: prefix.id, status: 'reserved' }],
        ['create', 'regions', { name: 'not made' }],
      ),
    );
    const invalid = await createWithJob(createPrefix('10.7.0.0/16'));
    await root.put(`/api/inventory/prefixes/${prefix.id}`, { description: 'changed' }).expect(200);
    await createRecord('10.7.0.0/16');
    return { differs, invalid, prefixId: prefix.id };
  }

  beforeAll(async () => {
    root = api.client.as({ actor: 'root', roles: 'platform-admin' });
    waiting = await createWaiting();
    const locks = await lockRequests();
    stopped = await createStopped(locks);
    undecided = await createUndecided();
    await worker.kill();
    await locks.release();
    expect(await boundJobs(stopped.creating)).toEqual([]);
    expect(await readRequest(requester, stopped.applied)).toMatchObject({ execution: 'running' });
    await decideInTime(waiting);
    createdBefore = await createWithJob(echoJob);
    reconciled = await createReconciled();
    stale = await createStale();
    await expire(undecided);
    await worker.start();
  }, 120_000);

  test('decisions take effect and requests expire', async () => {
    const [inTime, later] = waiting;
    await untilStatus(requester, undecided.id, 'expired', WITHIN_MS);
    await expectExecutedOnce(inTime);
    expect(await readRequest(requester, later)).toMatchObject({ execution: 'queued' });
  });

  test('a job that was created before the crash is run once', () =>
    expectExecutedOnce(createdBefore));

  test('a job whose run the reconciler started is followed with few checks', async () => {
    await expectExecutedOnce(reconciled);
    const describeApproval = () =>
      api.deps.temporal.call(20_000, (client) =>
        client.workflow.getHandle(`approval:${reconciled}`).describe(),
      );
    const closed = await eventually(describeApproval, ({ status }) => status.name === 'COMPLETED', {
      withinMs: WITHIN_MS,
    });
    expect(closed.historyLength).toBeLessThan(60);
  });

  test('records that have changed since make the requests stale', async () => {
    const differs = await untilExecution(requester, stale.differs, 'stale', WITHIN_MS);
    expect(differs).toMatchObject({
      error: { code: 'stale_plan' },
      difference: { effects: [{ approved: { version: 1 }, now: { version: 2 } }] },
    });
    expect(await readJob(differs.jobId)).toMatchObject({
      status: 'failed',
      attempts: 1,
      error: { code: 'stale_plan' },
    });
    expect(await untilExecution(requester, stale.invalid, 'stale', WITHIN_MS)).toMatchObject({
      difference: { conflicts: [{ code: 'duplicate' }], effects: [] },
    });
    const { items } = await root
      .get<{ items: object[] }>('/api/inventory/regions?name=not%20made')
      .expect(200);
    expect(items).toEqual([]);
    expect(
      await root.get<object>(`/api/inventory/prefixes/${stale.prefixId}`).expect(200),
    ).toMatchObject({ status: 'active' });
  });

  test('while it creates the job: another worker creates it', () =>
    expectExecutedOnce(stopped.creating));

  test('while the job runs: another attempt finishes it', async () => {
    const { jobId } = await expectExecutedOnce(stopped.running);
    expect(await readJob(jobId)).toMatchObject({ attempts: 2 });
  });

  test('after a change was applied and before the job reports it: the change is applied once', async () => {
    const { jobId } = await expectExecutedOnce(stopped.applied);
    expect(await readJob(jobId)).toMatchObject({
      status: 'succeeded',
      attempts: 2,
      result: {
        changes: [{ action: 'create', resource: 'prefixes', id: stopped.prefixId, version: 1 }],
      },
    });
    const entry = { action: 'inventory.prefix.create', subject_id: stopped.prefixId };
    expect(await api.deps.db('audit_entries').where(entry)).toHaveLength(1);
  });

  test('while it expires the request: the request expires once', async () => {
    await untilStatus(requester, stopped.expiring, 'expired', WITHIN_MS);
    const types = await eventTypesOf(api, stopped.expiring);
    expect(types.filter((type) => type === 'workflow.expired')).toHaveLength(1);
  });
});

test(
  'every decision takes effect once while workers keep crashing',
  async () => {
    const workers = await startCrashingWorkers(api, await worker.start());
    const crashes = workers.crash(killRounds(), 1_500);
    const bodies = [echoJob, {}, echoJob, sleepJob(300)];
    const ids = await Promise.all(
      Array.from({ length: 16 }, async (_, i) => {
        const body = i % 3 === 0 ? createPrefix(`10.${100 + i}.0.0/16`) : bodies[i % bodies.length];
        const { id } = await createRequest(requester, body);
        await (i % 8 === 7 ? reject(decider, id) : approve(decider, id)).expect(200);
        return id;
      }),
    );
    type Row = { id: string; status: string; execution: string; job_type: string | null };
    const readRows = () => api.deps.db<Row>('approvals').whereIn('id', ids);
    await eventually(
      async () =>
        (await readRows()).filter(({ execution }) => ['queued', 'running'].includes(execution)),
      (unfinished) => unfinished.length === 0,
      { withinMs: 120_000 * killRounds() },
    );
    await crashes;
    const rows: Row[] = await readRows();
    expect(rows.filter(({ status }) => status === 'rejected')).toHaveLength(2);
    for (const { id, status, execution, job_type: jobType } of rows) {
      const isExecuted = status === 'approved' && jobType !== null;
      const jobs = await boundJobs(id);
      expect([id, execution, jobs.length]).toEqual([
        id,
        isExecuted ? 'succeeded' : 'none',
        isExecuted ? 1 : 0,
      ]);
      if (isExecuted) await expectExecutedOnce(id);
    }
    const applied = rows.filter(
      ({ job_type: type, status }) => type === 'inventory.apply' && status === 'approved',
    );
    const { rows: counted }: { rows: { n: number }[] } = await api.deps.db.raw(
      "SELECT count(*) AS n FROM prefixes WHERE cidr <<= '10.96.0.0/11' AND masklen(cidr) = 16",
    );
    expect(counted[0]?.n).toBe(applied.length);
  },
  240_000 * killRounds(),
);
