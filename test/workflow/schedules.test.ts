import { describe, expect, it } from '@jest/globals';
import { startAppOn } from '../support/app.ts';
import { createDatabase } from '../support/database.ts';
import { eventually } from '../support/eventually.ts';
import { admin, person } from '../support/users.ts';
import {
  clockTime,
  everyMinute,
  inShort,
  jobOf,
  logOf,
  minute,
  neglect,
  patience,
  sleeping,
  untilLog,
  withSchedules,
} from '../support/schedules.ts';

const { bed, fire, inTenant, schedule, untilMirrored } = withSchedules();

describe('a time due', () => {
  it('is fired by Temporal as the owner, and leaves a run, a job, events and audit entries', async () => {
    // All of them before the same full minute.
    await eventually(
      () => new Date().getSeconds(),
      (seconds) => seconds > 0 && seconds < 55,
    );
    const [fired, paused, off] = [inTenant(), inTenant(), inTenant()];
    const due = await everyMinute(fired, {
      payload: { n: 1 },
      retryPolicy: { maxAttempts: 7 },
      maxRuns: 1,
      catchupWindowSeconds: 300,
    });
    const idle = await everyMinute(paused, { enabled: false });
    const busy = await everyMinute(off, { ...sleeping, catchupWindowSeconds: 300 });
    const running = (await off.post(`/api/schedules/${busy.id}/trigger`)).body;
    const [run] = await untilLog(fired, due.id, (runs) => runs.length > 0, 75_000);
    expect(run).toMatchObject({ kind: 'due', outcome: 'fired', reason: null, actorId: 'alice' });
    const job = await jobOf(fired, run.jobId);
    expect(job).toMatchObject({
      payload: { n: 1 },
      createdBy: 'alice',
      source: { kind: 'schedule', id: due.id },
      retryPolicy: { maxAttempts: 7 },
    });
    const read = (await fired.get(`/api/schedules/${due.id}`)).body;
    expect(read).toMatchObject({
      runCount: 1,
      state: 'ended',
      nextRuns: [],
      lastRun: { id: run.id },
    });
    const events = (await fired.get(`/api/events?type=schedule.fired&subject=${due.id}`)).body
      .items;
    expect(events.map((event: any) => event.data)).toEqual([
      {
        scheduleId: due.id,
        name: 'minutely',
        jobType: 'core.echo',
        kind: 'due',
        dueAt: run.dueAt,
        runId: run.id,
        jobId: run.jobId,
      },
    ]);
    const audit = (await admin(bed.app).get(`/api/audit?subjectId=${due.id}`)).body.items.map(
      (entry: any) => [entry.action, entry.actorId],
    );
    expect(audit).toEqual(
      expect.arrayContaining([
        ['schedule.create', 'alice'],
        ['schedule.fire', 'alice'],
      ]),
    );
    // It has ended, and Temporal need not know of it any more.
    await eventually(
      () =>
        schedule(due.id, (handle) => handle.describe()).then(
          () => true,
          () => false,
        ),
      (found) => !found,
    );

    const [blocked] = await untilLog(off, busy.id, (runs) =>
      runs.some(({ kind }) => kind === 'due'),
    ).then((runs) => runs.filter(({ kind }) => kind === 'due'));
    expect(blocked).toMatchObject({ outcome: 'skipped', reason: 'overlap', dueAt: run.dueAt });
    expect(await logOf(paused, idle.id)).toEqual([]);
    await bed.app.deps.sweep.account(patience());
    expect(inShort(await logOf(paused, idle.id))).toEqual([
      `${clockTime(new Date(run.dueAt))} skipped disabled`,
    ]);
    await off.post(`/api/jobs/${running.jobId}/cancel`);

    const workflows = await bed.app.deps.link.call(5_000, async (client) => {
      const found = [];
      for await (const { type, status } of client.workflow.list({
        query: `HoldfastRecord = '${due.id}'`,
      }))
        found.push([type, status.name]);
      return found;
    });
    expect(workflows).toEqual([['fireSchedule', 'COMPLETED']]);
  }, 120_000);

  it('has one run, however many come with it', async () => {
    const client = inTenant();
    const { id } = await everyMinute(client, {
      overlapPolicy: 'allowAll',
      catchupWindowSeconds: 200,
    });
    await neglect(bed.app, id, minute(-1));
    const results = await Promise.all(
      Array.from({ length: 12 }, () => fire(id, minute(-1)).catch(() => ({ outcome: 'again' }))),
    );
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
    const done = await eventually(
      () => schedule(id, (handle) => handle.describe()),
      (found) => found.info.recentActions.length > 0,
    );
    const workflowId = done.info.recentActions[0]?.action.workflow.workflowId ?? '';
    expect(
      await bed.app.deps.link.call(20_000, (temporal) =>
        temporal.workflow.getHandle(workflowId).result(),
      ),
    ).toEqual({ outcome: 'not_due' });
    expect(await logOf(client, id)).toEqual([]);
  });
});

describe('the log accounts for every time due', () => {
  it('over a time without workers: caught up within the window, missed before it', async () => {
    const database = await createDatabase();
    const api = await startAppOn(database.url, { HOLDFAST_ROLE: 'api' });
    const client = inTenant(api);
    const { id } = await everyMinute(client, {
      overlapPolicy: 'allowAll',
      catchupWindowSeconds: 200,
    });
    await untilMirrored(id, api);
    const from = minute(-9);
    await neglect(api, id, from);
    // Temporal has started a run at each time due, as it would have; there is no worker.
    await schedule(
      id,
      (handle) =>
        handle.backfill({
          start: new Date(from.getTime() - 1),
          end: new Date(Date.now() - 1),
          overlap: 'ALLOW_ALL',
        }),
      api,
    );
    await eventually(
      () => schedule(id, (handle) => handle.describe(), api),
      (found) => found.info.numActionsTaken >= 9,
    );
    expect(await logOf(client, id)).toEqual([]);

    const worker = await startAppOn(database.url, {
      HOLDFAST_TASK_QUEUE: api.env.HOLDFAST_TASK_QUEUE ?? '',
      HOLDFAST_ROLE: 'worker',
    });
    try {
      await untilLog(client, id, (runs) => runs.length >= 9);
      await worker.deps.sweep.account(patience());
      const runs = await logOf(client, id);
      expect(runs.map(({ dueAt }) => dueAt)).toEqual(
        runs.map((_, i) => new Date(from.getTime() + i * 60_000).toISOString()),
      );
      const outcomes = runs.map(({ outcome, reason, decidedAt, dueAt }) => ({
        outcome,
        reason,
        late: Date.parse(decidedAt) - Date.parse(dueAt) > 200_000,
      }));
      expect(outcomes.filter(({ outcome, late }) => outcome === 'fired' && late)).toEqual([]);
      expect(
        outcomes.filter(
          ({ outcome, reason, late }) => outcome === 'skipped' && (reason !== 'missed' || !late),
        ),
      ).toEqual([]);
      expect(outcomes.filter(({ outcome }) => outcome === 'fired').length).toBeGreaterThanOrEqual(
        3,
      );
      expect(outcomes.filter(({ outcome }) => outcome === 'skipped').length).toBeGreaterThanOrEqual(
        5,
      );
      expect(
        runs.filter(({ outcome }) => outcome === 'fired').some(({ caughtUp }) => caughtUp),
      ).toBe(true);
    } finally {
      await worker.stop();
      await schedule(id, (handle) => handle.delete(), api);
      await api.stop();
      await database.drop();
    }
  });

  it('when Temporal was away, too', async () => {
    const client = inTenant();
    const { id } = await everyMinute(client, {
      overlapPolicy: 'allowAll',
      catchupWindowSeconds: 100,
    });
    await neglect(bed.app, id, minute(-2_500));
    await bed.app.deps.sweep.account(patience());
    const { rows } = await bed.app.deps.db.raw(
      `SELECT outcome, reason, count(*)::int, min(due_at), max(due_at) FROM schedule_runs WHERE schedule_id = ? GROUP BY 1, 2 ORDER BY 1`,
      [id],
    );
    const [fired, missed] = rows as {
      outcome: string;
      reason: string | null;
      count: number;
      min: Date;
      max: Date;
    }[];
    if (!fired || !missed) throw new Error(JSON.stringify(rows));
    expect(missed).toMatchObject({ outcome: 'skipped', reason: 'missed', min: minute(-2_500) });
    expect(fired).toMatchObject({ outcome: 'fired' });
    expect(fired.count + missed.count).toBeGreaterThanOrEqual(2_500);
    expect(fired.max.getTime() - missed.min.getTime()).toBe(
      (fired.count + missed.count - 1) * 60_000,
    );
    const skips = (await client.get(`/api/events?type=schedule.skipped&subject=${id}`)).body.items;
    expect(skips.reduce((sum: number, event: any) => sum + (event.data.times as number), 0)).toBe(
      missed.count,
    );
  });

  it('when it is paused, changed, resumed and deleted', async () => {
    const client = inTenant();
    const { id } = await everyMinute(client, { catchupWindowSeconds: 200 });
    await neglect(bed.app, id, minute(-10));
    await client.post(`/api/schedules/${id}/pause`, {});
    expect(
      inShort(await logOf(client, id))
        .map((line) => line.slice(6))
        .slice(0, 6),
    ).toEqual(Array.from({ length: 6 }, () => 'skipped missed'));
    const paused = await logOf(client, id);
    expect(paused.at(-1)).toMatchObject({ outcome: 'skipped', reason: 'disabled' });

    // Two hours later.
    await bed.app.deps.db('schedule_runs').where({ schedule_id: id }).delete();
    await neglect(bed.app, id, minute(-5));
    await client.post(`/api/schedules/${id}/resume`, { reason: 'done' });
    expect((await logOf(client, id)).map(({ reason }) => reason)).toEqual(
      Array.from({ length: 6 }, () => 'disabled'),
    );

    await bed.app.deps.db('schedule_runs').where({ schedule_id: id }).delete();
    await neglect(bed.app, id, minute(-1));
    await client.put(`/api/schedules/${id}`, { cronExpression: '0 0 1 1 *' });
    expect((await logOf(client, id)).map(({ reason }) => reason)).toEqual(['changed', 'changed']);

    await client.put(`/api/schedules/${id}`, { cronExpression: '* * * * *' });
    await bed.app.deps.db('schedule_runs').where({ schedule_id: id }).delete();
    await neglect(bed.app, id, minute());
    await client.delete(`/api/schedules/${id}`);
    const last = (await logOf(client, id)).at(-1);
    expect(last).toMatchObject({ outcome: 'skipped', reason: 'deleted' });
    expect(await fire(id, minute())).toEqual({ outcome: 'not_due' });
  });

  it('when only its bounds change, what is due still may fire still', async () => {
    const client = inTenant();
    const { id } = await everyMinute(client, {
      catchupWindowSeconds: 3_600,
      overlapPolicy: 'allowAll',
      cronExpression: '*/10 * * * *',
    });
    const ten = (n: number) => new Date(Math.floor(Date.now() / 600_000 + n) * 600_000);
    await neglect(bed.app, id, ten(-2));
    await client.put(`/api/schedules/${id}`, { maxRuns: 100 });
    expect(await logOf(client, id)).toEqual([]);
    await client.put(`/api/schedules/${id}`, { startAt: ten(-1).toISOString() });
    expect((await logOf(client, id)).map(({ dueAt, reason }) => [dueAt, reason])).toEqual([
      [ten(-2).toISOString(), 'changed'],
    ]);
    expect((await fire(id, ten(-1))).outcome).toBe('fired');
  });

  it('when the last job is that of a later time than the first open one', async () => {
    const client = inTenant();
    const { id } = await everyMinute(client, {
      catchupWindowSeconds: 3_600,
      maxRuns: 1,
      cronExpression: '*/10 * * * *',
    });
    const ten = (n: number) => new Date(Math.floor(Date.now() / 600_000 + n) * 600_000);
    await neglect(bed.app, id, ten(-3));
    expect((await fire(id, ten(-2))).outcome).toBe('fired');
    expect(inShort(await logOf(client, id)).map((line) => line.slice(6))).toEqual([
      'skipped ended',
      'fired',
      'skipped ended',
      ...(ten(0) <= new Date() ? ['skipped ended'] : []),
    ]);
  });

  it('and nothing that is not due yet', async () => {
    const { id } = await everyMinute(inTenant());
    expect(await fire(id, minute(60))).toEqual({ outcome: 'not_due' });
  });

  it('when its owner lost the right, and got it back', async () => {
    const somebody = await person(bed.app, { roleId: 'operator', tenantId: 'lost' });
    const overseer = bed.app.client.as({ actor: 'root', roles: 'platform-admin', tenant: 'lost' });
    const made = await somebody.client.post('/api/schedules', {
      name: 'mine',
      cronExpression: '* * * * *',
      jobType: 'core.echo',
      payload: {},
    });
    const { id } = made.body;
    expect(made.status).toBe(201);
    await bed.app.deps
      .db('schedules')
      .where({ id })
      .update({ overlap_policy: 'allowAll', catchup_window_seconds: 200 });
    await neglect(bed.app, id, minute(-1));
    const [assignment] = (await admin(bed.app).get(`/api/rbac/assignments?userId=${somebody.id}`))
      .body.items;
    await admin(bed.app).delete(`/api/rbac/assignments/${assignment.id}`);
    expect(await fire(id, minute(-1))).toMatchObject({
      outcome: 'skipped',
      reason: 'owner_denied',
    });
    const refused = await overseer.post(`/api/schedules/${id}/trigger`);
    expect([refused.status, refused.body.code]).toEqual([409, 'schedule_cannot_run']);
    await overseer.put(`/api/schedules/${id}`, { takeOver: true });
    await neglect(bed.app, id, minute(-1));
    await bed.app.deps.db('schedule_runs').where({ schedule_id: id }).delete();
    expect(await fire(id, minute(-1))).toMatchObject({ outcome: 'fired' });
    expect((await overseer.get(`/api/schedules/${id}`)).body.owner).toBe('root');
  });
});
