import { afterAll, afterEach, beforeAll, expect, test } from '@jest/globals';
import { freePort } from '../../dev/freePort.ts';
import {
  approve,
  echo,
  eventsOf,
  prefix,
  read,
  request,
  untilExecution,
  untilStatus,
} from '../support/approvals.ts';
import { startApp, testEnv, type TestApp } from '../support/app.ts';
import { createClient, type TestClient } from '../support/client.ts';
import { createDatabase } from '../support/database.ts';
import { eventually } from '../support/eventually.ts';
import { startMortals } from '../support/crashingWorkers.ts';
import { killAll, startProcess } from '../support/processes.ts';

/** The API in this process, workers in processes of their own that can be killed. */
let api: TestApp;
let asker: TestClient;
let decider: TestClient;
beforeAll(async () => {
  api = await startApp({ HOLDFAST_ROLE: 'api' });
  asker = api.client.as({ actor: 'asker', roles: 'operator' });
  decider = api.client.as({ actor: 'decider', roles: 'approver' });
});
afterEach(killAll);
afterAll(() => api.stop());

const startWorker = () => startProcess({ ...api.env, HOLDFAST_ROLE: 'worker' });
const jobsOf = (id: string) =>
  api.deps.db('jobs').where({ source_kind: 'approval', source_id: id });
const once = async (id: string) => {
  expect(await jobsOf(id)).toHaveLength(1);
  const types = await eventsOf(api, id);
  expect([
    types.filter((type) => type === 'workflow.approved').length,
    types.filter((type) => type === 'workflow.executed').length,
  ]).toEqual([1, 1]);
};

/** Holds the row of a request: whoever wants to write it waits until this is released. */
async function hold(id: string) {
  const trx = await api.deps.db.transaction();
  await trx('approvals').where({ id }).forUpdate();
  return {
    waiting: () =>
      eventually(
        async () =>
          (
            await api.deps.db.raw(
              "SELECT count(*) AS n FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database()",
            )
          ).rows[0].n as number,
        (n) => n > 0,
        { withinMs: 45_000 },
      ),
    release: () => trx.rollback(),
  };
}

test('killed between the request and the start of its run, and between the decision and its signal', async () => {
  const database = await createDatabase();
  const env = testEnv(database.url);
  const cut = { ...env, HOLDFAST_ROLE: 'api', TEMPORAL_ADDRESS: `127.0.0.1:${await freePort(0)}` };
  const as = (base: string, actor: string, roles: string) =>
    createClient(base).as({ actor, roles });
  const first = await startProcess(cut);
  const made = await request(as(first.base, 'asker', 'operator'), echo);
  await first.kill();
  const second = await startProcess(cut);
  expect((await approve(as(second.base, 'decider', 'approver'), made.id)).body).toMatchObject({
    status: 'approved',
    execution: 'queued',
  });
  await second.kill();
  const third = await startProcess(env);
  const reader = as(third.base, 'asker', 'operator');
  const done = await untilExecution(reader, made.id, 'succeeded', 45_000);
  expect((await reader.get(`/api/jobs/${done.jobId as string}`)).body).toMatchObject({
    status: 'succeeded',
    attempts: 1,
  });
  expect(await third.terminate()).toBe(0);
  await database.drop();
});

test('a run that has waited, its worker killed: decided while there is none, and an hour later carried out', async () => {
  const worker = await startWorker();
  const at = (minutes: number) => new Date(Date.now() + minutes * 60_000).toISOString();
  const [one, late, never] = [
    await request(asker, { ...echo, expiresAt: at(30) }),
    await request(asker, { ...echo, executeAt: at(30) }),
    await request(asker, { ...echo, expiresAt: at(30) }),
  ];
  await eventually(
    () => api.deps.inspect(`approval:${never.id as string}`),
    (state) => state.found,
  );
  await worker.kill();
  for (const { id } of [one, late])
    expect((await approve(decider, id)).body).toMatchObject({
      status: 'approved',
      execution: 'queued',
    });
  // An hour goes by: the request is an hour older, and so is all that is due. The hash covers executeAt, which stays.
  await api.deps.db.raw(
    "UPDATE approvals SET created_at = created_at - interval '1 hour', closed_at = closed_at - interval '1 hour', expires_at = expires_at - interval '1 hour'",
  );
  expect((await approve(decider, never.id)).body).toMatchObject({ code: 'approval_closed' });
  const other = await startWorker();
  await untilExecution(asker, one.id, 'succeeded', 45_000);
  await untilStatus(asker, never.id, 'expired', 45_000);
  expect(await read(asker, late.id)).toMatchObject({ execution: 'queued' });
  await once(one.id);
  await other.terminate();
});

test('killed while it makes the job: another worker makes it', async () => {
  const worker = await startWorker();
  const made = await request(asker, {
    ...echo,
    executeAt: new Date(Date.now() + 1_000).toISOString(),
  });
  await approve(decider, made.id);
  const held = await hold(made.id);
  await held.waiting();
  await worker.kill();
  await held.release();
  expect(await jobsOf(made.id)).toEqual([]);
  const other = await startWorker();
  await untilExecution(asker, made.id, 'succeeded', 45_000);
  await once(made.id);
  await other.terminate();
});

test('killed after the job was made and before anybody knew: its run is started by another worker, once', async () => {
  const made = await request(asker, echo);
  await approve(decider, made.id);
  // All that a worker does before it dies there.
  await api.deps.approvals.runs.execute(made.id);
  expect(await read(asker, made.id)).toMatchObject({ execution: 'running' });
  const worker = await startWorker();
  await untilExecution(asker, made.id, 'succeeded', 45_000);
  await once(made.id);
  await worker.terminate();
});

test('a job whose run the reconciler has started is followed to its end, without haste', async () => {
  // A first worker teaches the server the search attributes that a start needs.
  await (await startWorker()).terminate();
  const made = await request(asker, { jobType: 'core.sleep', jobPayload: { durationMs: 2_000 } });
  await approve(decider, made.id);
  await api.deps.approvals.runs.execute(made.id);
  const [job] = await jobsOf(made.id);
  await api.deps
    .db('jobs')
    .where({ id: job.id })
    .update({ checked_at: new Date(0) });
  await api.deps.reconcile.jobs(AbortSignal.timeout(5_000));
  await eventually(
    () => api.deps.inspect(`job:${job.id as string}`),
    (state) => state.found,
  );
  const worker = await startWorker();
  await untilExecution(asker, made.id, 'succeeded', 45_000);
  const describe = () =>
    api.deps.link.call(5_000, (client) =>
      client.workflow.getHandle(`approval:${made.id as string}`).describe(),
    );
  const closed = await eventually(describe, ({ status }) => status.name === 'COMPLETED', {
    withinMs: 45_000,
  });
  expect(closed.historyLength).toBeLessThan(60);
  await once(made.id);
  await worker.terminate();
});

test('records that change after the job was made, and before it writes, make it stale all the same', async () => {
  const root = api.client.as({ actor: 'root', roles: 'platform-admin' });
  const { body: net } = await root.post('/api/inventory/prefixes', { cidr: '10.8.0.0/16' });
  const change = {
    validationRequest: {
      mutations: [
        { resource: 'prefixes', operation: 'update', record: { id: net.id, status: 'reserved' } },
        { resource: 'regions', operation: 'create', record: { name: 'not made' } },
      ],
    },
  };
  const [differs, invalid] = [
    await request(asker, change),
    await request(asker, prefix('10.7.0.0/16')),
  ];
  for (const { id } of [differs, invalid]) {
    await approve(decider, id);
    await api.deps.approvals.runs.execute(id);
  }
  await root.put(`/api/inventory/prefixes/${net.id as string}`, { description: 'meanwhile' });
  await root.post('/api/inventory/prefixes', { cidr: '10.7.0.0/16' });
  const worker = await startWorker();
  const end = await untilExecution(asker, differs.id, 'stale', 45_000);
  expect(end).toMatchObject({
    error: { code: 'stale_plan' },
    difference: { effects: [{ approved: { version: 1 }, now: { version: 2 } }] },
  });
  expect((await asker.get(`/api/jobs/${end.jobId as string}`)).body).toMatchObject({
    status: 'failed',
    attempts: 1,
    error: { code: 'stale_plan' },
  });
  expect(await untilExecution(asker, invalid.id, 'stale', 45_000)).toMatchObject({
    difference: { conflicts: [{ code: 'duplicate' }], effects: [] },
  });
  expect((await root.get('/api/inventory/regions?name=not%20made')).body.items).toEqual([]);
  expect((await root.get(`/api/inventory/prefixes/${net.id as string}`)).body).toMatchObject({
    status: 'active',
  });
  await worker.terminate();
});

test('killed in the middle of the job: it is taken up', async () => {
  const worker = await startWorker();
  const made = await request(asker, { jobType: 'core.sleep', jobPayload: { durationMs: 2_500 } });
  await approve(decider, made.id);
  const { jobId } = await untilExecution(asker, made.id, 'running', 45_000);
  await eventually(
    () => asker.get(`/api/jobs/${jobId as string}`),
    ({ body }) => body.status === 'running',
  );
  await worker.kill();
  const other = await startWorker();
  await untilExecution(asker, made.id, 'succeeded', 45_000);
  expect((await asker.get(`/api/jobs/${jobId as string}`)).body).toMatchObject({ attempts: 2 });
  await once(made.id);
  await other.terminate();
});

test('killed after a change was made and before the job could say so: it is made once', async () => {
  const worker = await startWorker();
  const made = await request(asker, prefix('10.9.0.0/16'));
  await approve(decider, made.id);
  await untilExecution(asker, made.id, 'running', 45_000);
  const held = await hold(made.id);
  await held.waiting();
  await eventually(
    () => api.deps.db('prefixes').where({ cidr: '10.9.0.0/16' }),
    (rows) => rows.length === 1,
  );
  await worker.kill();
  await held.release();
  expect(await read(asker, made.id)).toMatchObject({ execution: 'running' });
  const other = await startWorker();
  const done = await untilExecution(asker, made.id, 'succeeded', 45_000);
  const job = (await asker.get(`/api/jobs/${done.jobId as string}`)).body;
  const [row] = await api.deps.db('prefixes').where({ cidr: '10.9.0.0/16' });
  expect(job).toMatchObject({
    status: 'succeeded',
    attempts: 2,
    result: { changes: [{ action: 'create', resource: 'prefixes', id: row.id, version: 1 }] },
  });
  expect(
    await api.deps
      .db('audit_entries')
      .where({ action: 'inventory.prefix.create', subject_id: row.id }),
  ).toHaveLength(1);
  await once(made.id);
  await other.terminate();
});

test('killed while it expires: it expires once', async () => {
  const worker = await startWorker();
  const made = await request(asker, {
    ...echo,
    expiresAt: new Date(Date.now() + 1_500).toISOString(),
  });
  const held = await hold(made.id);
  await held.waiting();
  await worker.kill();
  await held.release();
  const other = await startWorker();
  await untilStatus(asker, made.id, 'expired', 45_000);
  expect((await eventsOf(api, made.id)).filter((type) => type === 'workflow.expired')).toHaveLength(
    1,
  );
  await other.terminate();
});

test('workers killed again and again, whatever they are at: every decision has its consequence, once', async () => {
  const mortals = await startMortals(api, 2, 2_000);
  const kinds = [
    echo,
    {},
    { ...echo, executeAt: undefined },
    { jobType: 'core.sleep', jobPayload: { durationMs: 300 } },
  ];
  const made = await Promise.all(
    Array.from({ length: 24 }, async (_, i) => {
      const more = i % 3 === 0 ? prefix(`10.${100 + i}.0.0/16`) : (kinds[i % kinds.length] ?? {});
      const { id } = await request(asker, more);
      await (i % 8 === 7
        ? decider.post(`/api/workflows/${id as string}/reject`, {})
        : approve(decider, id));
      return id as string;
    }),
  );
  const states = async () => api.deps.db('approvals').whereIn('id', made);
  await eventually(
    async () =>
      (await states()).filter(({ execution }: any) => ['queued', 'running'].includes(execution))
        .length,
    (left) => left === 0 && mortals.kills() >= 6,
    { withinMs: 120_000 },
  );
  await mortals.spare();
  const rows = await states();
  expect(rows.filter(({ status }: any) => status === 'rejected')).toHaveLength(3);
  for (const row of rows as any[]) {
    const jobs = await jobsOf(row.id);
    const bound = row.status === 'approved' && row.job_type !== null;
    expect([row.id, row.execution, jobs.length]).toEqual([
      row.id,
      bound ? 'succeeded' : 'none',
      bound ? 1 : 0,
    ]);
    if (bound) await once(row.id);
  }
  const { rows: made2 } = await api.deps.db.raw(
    "SELECT count(*) AS n FROM prefixes WHERE cidr <<= '10.96.0.0/11' AND masklen(cidr) = 16",
  );
  expect(made2[0].n).toBe(
    rows.filter(
      ({ job_type, status }: any) => job_type === 'inventory.apply' && status === 'approved',
    ).length,
  );
}, 240_000);
