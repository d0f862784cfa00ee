import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { startApp, startAppOn, type TestApp } from '../support/app.ts';
import type { TestClient } from '../support/client.ts';
import { createDatabase } from '../support/database.ts';
import { eventually } from '../support/eventually.ts';
import { admin, person } from '../support/people.ts';
import { clockTime, everyMinute, inShort, logOf, minute, neglect, untilLog } from '../support/schedules.ts';

let app: TestApp;
beforeAll(async () => {
  app = await startApp();
});
afterAll(() => app.stop());

let tenants = 0;
const inTenant = (of: TestApp = app): TestClient => of.client.as({ tenant: `t${tenants++}` });
const patience = () => AbortSignal.timeout(10_000);
const fire = (id: string, dueAt: Date) => app.deps.fires.fire(id, dueAt);
const jobOf = async (client: TestClient, id: string): Promise<any> => (await client.get(`/api/jobs/${id}`)).body;
const schedule = <T>(id: string, use: (handle: ReturnType<Awaited<Parameters<Parameters<TestApp['deps']['link']['call']>[1]>[0]>['schedule']['getHandle']>) => Promise<T>, of: TestApp = app): Promise<T> =>
  of.deps.link.call(5_000, (client) => use(client.schedule.getHandle(`schedule:${id}`)));
const untilMirrored = (id: string, of: TestApp = app) => eventually(() => schedule(id, (handle) => handle.describe(), of).catch(() => null), (found) => found !== null);
const sleeping = { jobType: 'core.sleep', payload: { durationMs: 60_000 } };

describe('a time due', () => {
  it('is fired by Temporal as the owner, and leaves a run, a job, events and audit entries', async () => {
    const [fired, paused, off] = [inTenant(), inTenant(), inTenant()];
    const due = await everyMinute(fired, { payload: { n: 1 }, retryPolicy: { maxAttempts: 7 }, maxRuns: 1, catchupWindowSeconds: 300 });
    const idle = await everyMinute(paused, { enabled: false });
    const busy = await everyMinute(off, { ...sleeping, catchupWindowSeconds: 300 });
    const running = (await off.post(`/api/schedules/${busy.id}/trigger`)).body;
    const [run] = await untilLog(fired, due.id, (runs) => runs.length > 0, 75_000);
    expect(run).toMatchObject({ kind: 'due', outcome: 'fired', reason: null, actorId: 'alice' });
    const job = await jobOf(fired, run.jobId);
    expect(job).toMatchObject({ payload: { n: 1 }, createdBy: 'alice', source: { kind: 'schedule', id: due.id }, retryPolicy: { maxAttempts: 7 } });
    const read = (await fired.get(`/api/schedules/${due.id}`)).body;
    expect(read).toMatchObject({ runCount: 1, state: 'ended', nextRuns: [], lastRun: { id: run.id } });
    const events = (await fired.get(`/api/events?type=schedule.fired&subject=${due.id}`)).body.items;
    expect(events.map((event: any) => event.data)).toEqual([{ scheduleId: due.id, name: 'minutely', jobType: 'core.echo', kind: 'due', dueAt: run.dueAt, runId: run.id, jobId: run.jobId }]);
    const audit = (await admin(app).get(`/api/audit?subjectId=${due.id}`)).body.items.map((entry: any) => [entry.action, entry.actorId]);
    expect(audit).toEqual(expect.arrayContaining([['schedule.create', 'alice'], ['schedule.fire', 'alice']]));
    // It has ended, and Temporal need not know of it any more.
    await eventually(() => schedule(due.id, (handle) => handle.describe()).then(() => true, () => false), (found) => !found);

    const [blocked] = await untilLog(off, busy.id, (runs) => runs.some(({ kind }) => kind === 'due')).then((runs) => runs.filter(({ kind }) => kind === 'due'));
    expect(blocked).toMatchObject({ outcome: 'skipped', reason: 'overlap', dueAt: run.dueAt });
    expect(await logOf(paused, idle.id)).toEqual([]);
    await app.deps.sweep.account(patience());
    expect(inShort(await logOf(paused, idle.id))).toEqual([`${clockTime(new Date(run.dueAt))} skipped disabled`]);
    await off.post(`/api/jobs/${running.jobId}/cancel`);

    const workflows = await app.deps.link.call(5_000, async (client) => {
      const found = [];
      for await (const { type, status } of client.workflow.list({ query: `HoldfastRecord = '${due.id}'` })) found.push([type, status.name]);
      return found;
    });
    expect(workflows).toEqual([['fireSchedule', 'COMPLETED']]);
  }, 120_000);

  it('has one run, however many come with it', async () => {
    const client = inTenant();
    const { id } = await everyMinute(client, { overlapPolicy: 'allowAll', catchupWindowSeconds: 200 });
    await neglect(app, id, minute(-1));
    const results = await Promise.all(Array.from({ length: 12 }, () => fire(id, minute(-1)).catch(() => ({ outcome: 'again' }))));
    expect(results.filter(({ outcome }) => outcome === 'fired')).toHaveLength(1);
    expect(await logOf(client, id, `&until=${minute(0).toISOString()}`)).toHaveLength(1);
    expect((await client.get('/api/jobs')).body.items).toHaveLength(1);
  });

  it('is one of the record only: what Temporal thinks is left alone', async () => {
    const client = inTenant();
    const { id } = await everyMinute(client, { cronExpression: '0 0 1 1 *' });
    expect(await fire(id, minute())).toEqual({ outcome: 'not_due' });
    await untilMirrored(id);
    await schedule(id, (handle) => handle.trigger());
    const done = await eventually(() => schedule(id, (handle) => handle.describe()), (found) => found.info.recentActions.length > 0);
    const workflowId = done.info.recentActions[0]?.action.workflow.workflowId ?? '';
    expect(await app.deps.link.call(20_000, (temporal) => temporal.workflow.getHandle(workflowId).result())).toEqual({ outcome: 'not_due' });
    expect(await logOf(client, id)).toEqual([]);
  });
});

describe('the log accounts for every time due', () => {
  it('over a time without workers: caught up within the window, missed before it', async () => {
    const database = await createDatabase();
    const api = await startAppOn(database.url, { HOLDFAST_ROLE: 'api' });
    const client = inTenant(api);
    const { id } = await everyMinute(client, { overlapPolicy: 'allowAll', catchupWindowSeconds: 200 });
    await untilMirrored(id, api);
    const from = minute(-9);
    await neglect(api, id, from);
    // Temporal has started a run at each time due, as it would have; there is no worker.
    await schedule(id, (handle) => handle.backfill({ start: new Date(from.getTime() - 1), end: new Date(Date.now() - 1), overlap: 'ALLOW_ALL' }), api);
    await eventually(() => schedule(id, (handle) => handle.describe(), api), (found) => found.info.numActionsTaken >= 9);
    expect(await logOf(client, id)).toEqual([]);

    const worker = await startAppOn(database.url, { HOLDFAST_TASK_QUEUE: api.env.HOLDFAST_TASK_QUEUE ?? '', HOLDFAST_ROLE: 'worker' });
    try {
      await untilLog(client, id, (runs) => runs.length >= 9);
      await worker.deps.sweep.account(patience());
      const runs = await logOf(client, id);
      expect(runs.map(({ dueAt }) => dueAt)).toEqual(runs.map((_, i) => new Date(from.getTime() + i * 60_000).toISOString()));
      const outcomes = runs.map(({ outcome, reason, decidedAt, dueAt }) => ({ outcome, reason, late: Date.parse(decidedAt) - Date.parse(dueAt) > 200_000 }));
      expect(outcomes.filter(({ outcome, late }) => outcome === 'fired' && late)).toEqual([]);
      expect(outcomes.filter(({ outcome, reason, late }) => outcome === 'skipped' && (reason !== 'missed' || !late))).toEqual([]);
      expect(outcomes.filter(({ outcome }) => outcome === 'fired').length).toBeGreaterThanOrEqual(3);
      expect(outcomes.filter(({ outcome }) => outcome === 'skipped').length).toBeGreaterThanOrEqual(5);
      expect(runs.filter(({ outcome }) => outcome === 'fired').some(({ caughtUp }) => caughtUp)).toBe(true);
    } finally {
      await worker.stop();
      await schedule(id, (handle) => handle.delete(), api);
      await api.stop();
      await database.drop();
    }
  });

  it('when Temporal was away, too', async () => {
    const client = inTenant();
    const { id } = await everyMinute(client, { overlapPolicy: 'allowAll', catchupWindowSeconds: 100 });
    await neglect(app, id, minute(-2_500));
    await app.deps.sweep.account(patience());
    const { rows } = await app.deps.db.raw(`SELECT outcome, reason, count(*)::int, min(due_at), max(due_at) FROM schedule_runs WHERE schedule_id = ? GROUP BY 1, 2 ORDER BY 1`, [id]);
    const [fired, missed] = rows as { outcome: string; reason: string | null; count: number; min: Date; max: Date }[];
    if (!fired || !missed) throw new Error(JSON.stringify(rows));
    expect(missed).toMatchObject({ outcome: 'skipped', reason: 'missed', min: minute(-2_500) });
    expect(fired).toMatchObject({ outcome: 'fired' });
    expect(fired.count + missed.count).toBeGreaterThanOrEqual(2_500);
    expect(fired.max.getTime() - missed.min.getTime()).toBe((fired.count + missed.count - 1) * 60_000);
    const skips = (await client.get(`/api/events?type=schedule.skipped&subject=${id}`)).body.items;
    expect(skips.reduce((sum: number, event: any) => sum + (event.data.times as number), 0)).toBe(missed.count);
  });

  it('when it is paused, changed, resumed and deleted', async () => {
    const client = inTenant();
    const { id } = await everyMinute(client, { catchupWindowSeconds: 200 });
    await neglect(app, id, minute(-10));
    await client.post(`/api/schedules/${id}/pause`, {});
    expect(inShort(await logOf(client, id)).map((line) => line.slice(6)).slice(0, 6)).toEqual(Array.from({ length: 6 }, () => 'skipped missed'));
    const paused = await logOf(client, id);
    expect(paused.at(-1)).toMatchObject({ outcome: 'skipped', reason: 'disabled' });

    // Two hours later.
    await app.deps.db('schedule_runs').where({ schedule_id: id }).delete();
    await neglect(app, id, minute(-5));
    await client.post(`/api/schedules/${id}/resume`, { reason: 'done' });
    expect((await logOf(client, id)).map(({ reason }) => reason)).toEqual(Array.from({ length: 6 }, () => 'disabled'));

    await app.deps.db('schedule_runs').where({ schedule_id: id }).delete();
    await neglect(app, id, minute(-1));
    await client.put(`/api/schedules/${id}`, { cronExpression: '0 0 1 1 *' });
    expect((await logOf(client, id)).map(({ reason }) => reason)).toEqual(['changed', 'changed']);

    await client.put(`/api/schedules/${id}`, { cronExpression: '* * * * *' });
    await app.deps.db('schedule_runs').where({ schedule_id: id }).delete();
    await neglect(app, id, minute());
    await client.delete(`/api/schedules/${id}`);
    const last = (await logOf(client, id)).at(-1);
    expect(last).toMatchObject({ outcome: 'skipped', reason: 'deleted' });
    expect(await fire(id, minute())).toEqual({ outcome: 'not_due' });
  });

  it('when its owner lost the right, and got it back', async () => {
    const somebody = await person(app, { roleId: 'operator', tenantId: 'lost' });
    const overseer = app.client.as({ actor: 'root', roles: 'platform-admin', tenant: 'lost' });
    const made = await somebody.client.post('/api/schedules', { name: 'mine', cronExpression: '* * * * *', jobType: 'core.echo', payload: {} });
    const { id } = made.body;
    expect(made.status).toBe(201);
    await app.deps.db('schedules').where({ id }).update({ overlap_policy: 'allowAll', catchup_window_seconds: 200 });
    await neglect(app, id, minute(-1));
    const [assignment] = (await admin(app).get(`/api/rbac/assignments?userId=${somebody.id}`)).body.items;
    await admin(app).delete(`/api/rbac/assignments/${assignment.id}`);
    expect(await fire(id, minute(-1))).toMatchObject({ outcome: 'skipped', reason: 'owner_denied' });
    const refused = await overseer.post(`/api/schedules/${id}/trigger`);
    expect([refused.status, refused.body.code]).toEqual([409, 'schedule_cannot_run']);
    await overseer.put(`/api/schedules/${id}`, { takeOver: true });
    await neglect(app, id, minute(-1));
    await app.deps.db('schedule_runs').where({ schedule_id: id }).delete();
    expect(await fire(id, minute(-1))).toMatchObject({ outcome: 'fired' });
    expect((await overseer.get(`/api/schedules/${id}`)).body.owner).toBe('root');
  });
});

describe('while a job of the schedule has not ended', () => {
  const begun = async (client: TestClient, policy: string) => {
    const { id } = await everyMinute(client, { ...sleeping, overlapPolicy: policy, catchupWindowSeconds: 600 });
    await neglect(app, id, minute(-5));
    const first = await fire(id, minute(-5));
    await eventually(() => jobOf(client, first.jobId ?? ''), (job) => job.status === 'running');
    return { id, jobId: first.jobId ?? '' };
  };
  const cancel = (client: TestClient, jobId: string) => client.post(`/api/jobs/${jobId}/cancel`);

  it('skip leaves times out, and refuses a trigger', async () => {
    const client = inTenant();
    const { id, jobId } = await begun(client, 'skip');
    expect(await fire(id, minute(-4))).toEqual({ outcome: 'skipped', reason: 'overlap' });
    const refused = await client.post(`/api/schedules/${id}/trigger`);
    expect([refused.status, refused.body.code]).toEqual([409, 'schedule_busy']);
    await cancel(client, jobId);
  });

  it('allowAll lets them run side by side', async () => {
    const client = inTenant();
    const { id, jobId } = await begun(client, 'allowAll');
    const second = await fire(id, minute(-4));
    expect(second.outcome).toBe('fired');
    for (const each of [jobId, second.jobId ?? '']) await cancel(client, each);
  });

  it('bufferOne keeps the first, which begins when the job has ended', async () => {
    const client = inTenant();
    const { id, jobId } = await begun(client, 'bufferOne');
    expect(await fire(id, minute(-4))).toEqual({ outcome: 'buffered' });
    expect(await fire(id, minute(-3))).toEqual({ outcome: 'skipped', reason: 'overlap' });
    await cancel(client, jobId);
    const runs = await untilLog(client, id, ([, second]) => second?.outcome === 'fired');
    expect(inShort(runs).map((line) => line.slice(6))).toEqual(['fired', 'fired', 'skipped overlap']);
    expect((await client.get(`/api/schedules/${id}`)).body.runCount).toBe(2);
    await cancel(client, runs[1].jobId);
  });

  it('a buffered run is skipped when the schedule is paused', async () => {
    const client = inTenant();
    const { id, jobId } = await begun(client, 'bufferOne');
    await fire(id, minute(-4));
    await client.post(`/api/schedules/${id}/pause`, {});
    expect((await logOf(client, id))[1]).toMatchObject({ outcome: 'skipped', reason: 'disabled' });
    await cancel(client, jobId);
  });

  it('cancelOther ends it, and begins when it has cleaned up', async () => {
    const client = inTenant();
    const { id, jobId } = await begun(client, 'cancelOther');
    expect(await fire(id, minute(-4))).toEqual({ outcome: 'buffered' });
    const runs = await untilLog(client, id, ([, second]) => second?.outcome === 'fired');
    const [before, after] = [await jobOf(client, jobId), await jobOf(client, runs[1].jobId)];
    expect(before.status).toBe('cancelled');
    expect(Date.parse(after.createdAt)).toBeGreaterThanOrEqual(Date.parse(before.finishedAt));
    await cancel(client, runs[1].jobId);
  });

  it('a release that was lost is made up for', async () => {
    const client = inTenant();
    const { id, jobId } = await begun(client, 'bufferOne');
    await fire(id, minute(-4));
    // The job ends and nobody hears of it.
    await app.deps.db('jobs').where({ id: jobId }).update({ status: 'cancelled', finished_at: new Date() });
    await app.deps.sweep.release(patience());
    expect((await logOf(client, id))[1]).toMatchObject({ outcome: 'fired' });
  });

  it('jobs that end and times that come at once leave nothing waiting', async () => {
    const client = inTenant();
    const { id } = await everyMinute(client, { overlapPolicy: 'bufferOne', catchupWindowSeconds: 3_600 });
    await neglect(app, id, minute(-40));
    for (let at = -40; at < -1; at += 3) await Promise.all([fire(id, minute(at)), fire(id, minute(at + 1)), fire(id, minute(at + 2))].map((each) => each.catch(() => undefined)));
    await eventually(() => logOf(client, id), (runs) => runs.every(({ outcome }) => outcome !== 'buffered'));
    await app.deps.sweep.account(patience());
    const runs = await eventually(() => logOf(client, id), (all) => all.every(({ outcome }) => outcome !== 'buffered'));
    expect(runs.length).toBeGreaterThanOrEqual(40);
    expect(new Set(runs.map(({ dueAt }) => dueAt)).size).toBe(runs.length);
  });
});

describe('on demand', () => {
  it('a trigger runs now, paused or not, as the owner, and counts for no time due', async () => {
    const client = inTenant();
    const { id } = await everyMinute(client, { enabled: false, maxRuns: 1 });
    const other = app.client.as({ actor: 'bob', tenant: `t${tenants - 1}` });
    const answer = await other.post(`/api/schedules/${id}/trigger`);
    expect(answer.status).toBe(202);
    expect(answer.body).toMatchObject({ kind: 'trigger', outcome: 'fired', actorId: 'bob' });
    expect((await client.get(answer.headers.get('location') ?? '')).body).toEqual(answer.body);
    expect(await eventually(() => jobOf(client, answer.body.jobId), (job) => job.status === 'succeeded')).toMatchObject({ createdBy: 'alice' });
    expect((await client.get(`/api/schedules/${id}`)).body).toMatchObject({ runCount: 0, state: 'paused', lastRun: { id: answer.body.id } });
  });

  it('a trigger with the same key runs once', async () => {
    const client = inTenant();
    const { id } = await everyMinute(client, { overlapPolicy: 'allowAll' });
    const answers = await Promise.all([1, 2, 3].map(() => client.post(`/api/schedules/${id}/trigger`, undefined, { 'idempotency-key': 'once' })));
    expect(answers.some(({ status }) => status === 202)).toBe(true);
    const again = await client.post(`/api/schedules/${id}/trigger`, undefined, { 'idempotency-key': 'once' });
    expect([again.status, again.body]).toEqual([202, answers.find(({ status }) => status === 202)?.body]);
    expect((await logOf(client, id)).filter(({ kind }) => kind === 'trigger')).toHaveLength(1);
  });

  it('a backfill makes the jobs of times that have not fired, once', async () => {
    const client = inTenant();
    const { id } = await everyMinute(client, { cronExpression: '0 * * * *', overlapPolicy: 'skip' });
    const hour = (hours: number) => new Date(Math.floor(Date.now() / 3_600_000 + hours) * 3_600_000);
    await neglect(app, id, hour(-2));
    await app.deps.sweep.account(patience());
    const range = { since: hour(-5).toISOString(), until: hour(-1).toISOString() };
    const done = await client.post(`/api/schedules/${id}/backfill`, range, { prefer: 'wait=20' });
    expect(done.body).toMatchObject({ type: 'schedule.backfill', status: 'succeeded', result: { times: 5, fired: 5 } });
    const again = await client.post(`/api/schedules/${id}/backfill`, range, { prefer: 'wait=20' });
    expect(again.body.result).toEqual({ times: 5, done_before: 5 });
    const runs = await logOf(client, id);
    expect(runs.filter(({ kind, outcome }) => kind === 'backfill' && outcome === 'fired')).toHaveLength(5);
    const list = await client.get(`/api/schedules/logs?scheduleId=${id}&kind=backfill&outcome=fired&limit=2`);
    expect(list.body.items.map(({ dueAt }: any) => dueAt)).toEqual([hour(-1).toISOString(), hour(-2).toISOString()]);
    expect((await client.get(`/api/schedules/logs?scheduleId=${id}&kind=backfill&limit=2&cursor=${list.body.nextCursor}`)).body.items[0].dueAt).toBe(hour(-3).toISOString());
  });

  it.each([
    [{ since: '2026-01-01T00:00:00Z', until: '2026-01-03T00:00:00Z' }, 'too_many'],
    [{ since: '2026-01-01T00:00:01Z', until: '2026-01-01T00:00:59Z' }, 'no_times'],
    [{ since: new Date().toISOString(), until: new Date(Date.now() + 600_000).toISOString() }, 'future'],
    [{ since: '2026-01-02T00:00:00Z', until: '2026-01-01T00:00:00Z' }, 'no_times'],
  ])('a backfill of %j is refused', async (range, code) => {
    const { id } = await everyMinute(inTenant());
    const answer = await app.client.as({ tenant: `t${tenants - 1}` }).post(`/api/schedules/${id}/backfill`, range);
    expect([answer.status, answer.body.errors?.[0]?.code]).toEqual([400, code]);
  });
});

describe('a Temporal Schedule', () => {
  const repaired = async () => {
    await app.deps.db('schedules').update({ checked_at: new Date(0) });
    return app.deps.mirrors.compare(patience());
  };

  it('that is as its record says is left alone', async () => {
    const client = inTenant();
    const { id } = await everyMinute(client, { cronExpression: '*/7 3,5 1-15/3 jan-mar sun', jitterSeconds: 5, startAt: '2026-01-01T00:00:00Z', endAt: '2036-01-01T00:00:00Z' });
    await untilMirrored(id);
    await repaired();
    await repaired();
    expect((await admin(app).get(`/api/audit?subjectId=${id}&action=schedule.repair`)).body.items).toEqual([]);
  });

  it.each<[string, (id: string) => Promise<unknown>]>([
    ['deleted', (id) => schedule(id, (handle) => handle.delete())],
    ['paused', (id) => schedule(id, (handle) => handle.pause('by hand'))],
    ['given other times', (id) => schedule(id, (handle) => handle.update((found) => ({ ...found, spec: { calendars: [{ hour: 4 }] } })))],
    ['given another workflow', (id) => schedule(id, (handle) => handle.update((found) => ({ ...found, action: { ...found.action, workflowType: 'job' } })))],
    ['given another policy', (id) => schedule(id, (handle) => handle.update((found) => ({ ...found, policies: { ...found.policies, overlap: 'SKIP' } })))],
    ['limited', (id) => schedule(id, (handle) => handle.update((found) => ({ ...found, state: { ...found.state, remainingActions: 1 } })))],
  ])('that was %s is put right', async (_, harm) => {
    const client = inTenant();
    const { id } = await everyMinute(client, { cronExpression: '0 0 13 * fri' });
    const essence = (mirror: Awaited<ReturnType<typeof untilMirrored>>) => mirror && [mirror.spec, mirror.policies, mirror.state, mirror.action.workflowType];
    const before = essence(await untilMirrored(id));
    await harm(id);
    // Temporal tells of a change some time after it was made.
    const repairs = () => admin(app).get(`/api/audit?subjectId=${id}&action=schedule.repair`).then(({ body }) => body.items.length as number);
    await eventually(async () => (await repairs()) > 0 || ((await repaired()), (await repairs()) > 0), Boolean);
    const found = await eventually(() => schedule(id, (handle) => handle.describe()).catch(() => null), (is) => JSON.stringify(essence(is)) === JSON.stringify(before));
    expect(essence(found)).toEqual(before);
  });

  it('without a record is taken away, and that of somebody else is not', async () => {
    const { id } = await everyMinute(inTenant());
    const foreign = 'schedule:sch_00000000000000000000000000';
    const action = { type: 'startWorkflow' as const, workflowType: 'fireSchedule', taskQueue: 'elsewhere', args: [] };
    await app.deps.link.call(5_000, (client) => client.schedule.create({ scheduleId: foreign, spec: {}, action, memo: { taskQueue: 'elsewhere' } }));
    await untilMirrored(id);
    await app.deps.db('schedules').where({ id }).update({ deleted_at: new Date(), next_due_at: null });
    await eventually(async () => {
      await repaired();
      return schedule(id, (handle) => handle.describe()).then(() => true, () => false);
    }, (there) => !there);
    await app.deps.link.call(5_000, (client) => client.schedule.getHandle(foreign).delete());
  });

  it('is made when Temporal was told nothing', async () => {
    const { id } = await everyMinute(inTenant());
    await untilMirrored(id);
    await schedule(id, (handle) => handle.delete());
    await app.deps.db('outbox').delete();
    await repaired();
    await untilMirrored(id);
  });
});
