import { describe, expect, it } from '@jest/globals';
import type { AssignmentRecord } from '../../../api/access/schemas.ts';
import type { RunRecord, ScheduleRecord } from '../../../api/schedules/schemas.ts';
import { assertDefined } from '../../../domain/shared/assert.ts';
import { startAppOn, type TestApp } from '../../support/app.ts';
import type { ProblemBody } from '../../support/client.ts';
import { createDatabase } from '../../support/database.ts';
import { eventually } from '../../support/eventually.ts';
import {
  backdateSchedule,
  createMinutelySchedule,
  listEventData,
  listRuns,
  minuteFromNow,
  minutesFromNow,
  readSchedule,
  summarizeOutcomes,
  timeoutSignal,
  useScheduleFixture,
  waitForRuns,
  type PageOf,
} from '../../support/schedules.ts';
import { admin, createUser } from '../../support/users.ts';

const {
  fixture,
  fireOccurrence,
  clientOfNewTenant,
  withTemporalSchedule,
  waitForTemporalSchedule,
} = useScheduleFixture();

const WINDOW_SECONDS = 200;

/** Counts steps of ten minutes from the present one, also when the clock reaches the next. */
function tenMinutesFromNow(): (steps: number) => Date {
  const present = Math.floor(Date.now() / 600_000);
  return (steps) => new Date((present + steps) * 600_000);
}

const forgetRuns = (scheduleId: string) =>
  fixture.app.deps.db('schedule_runs').where({ schedule_id: scheduleId }).delete();

/** Lets Temporal start a workflow for each minute since `from`, as it does while no worker runs. */
async function startMissedWorkflows(id: string, from: Date, app: TestApp): Promise<void> {
  const interval = { start: new Date(from.getTime() - 1), end: new Date(Date.now() - 1) };
  await withTemporalSchedule(
    id,
    (handle) => handle.backfill({ ...interval, overlap: 'ALLOW_ALL' }),
    app,
  );
  await eventually(
    () => withTemporalSchedule(id, (handle) => handle.describe(), app),
    ({ info }) => info.numActionsTaken >= 9,
  );
}

/** Expects a run for each minute since `from`: fired inside the catch-up window, missed before. */
function expectCaughtUp(runs: readonly RunRecord[], from: Date): void {
  expect(runs.map(({ dueAt }) => dueAt)).toEqual(
    runs.map((_, i) => minuteFromNow(i, from.getTime()).toISOString()),
  );
  const isLate = ({ decidedAt, dueAt }: RunRecord) =>
    Date.parse(decidedAt) - Date.parse(dueAt) > WINDOW_SECONDS * 1_000;
  for (const run of runs)
    expect(run).toMatchObject(
      isLate(run) ? { outcome: 'skipped', reason: 'missed' } : { outcome: 'fired', reason: null },
    );
  const fired = runs.filter(({ outcome }) => outcome === 'fired');
  expect(fired.length).toBeGreaterThanOrEqual(3);
  expect(runs.length - fired.length).toBeGreaterThanOrEqual(5);
  expect(fired.some(({ caughtUp }) => caughtUp)).toBe(true);
}

describe('the log has a run for each occurrence', () => {
  it('while no worker ran: caught up inside the window, missed before it', async () => {
    const database = await createDatabase();
    const api = await startAppOn(database.url, { HOLDFAST_ROLE: 'api' });
    const client = clientOfNewTenant(api);
    const { id } = await createMinutelySchedule(client, {
      overlapPolicy: 'allowAll',
      catchupWindowSeconds: WINDOW_SECONDS,
    });
    await waitForTemporalSchedule(id, api);
    const from = minuteFromNow(-9);
    await backdateSchedule(api, id, from);
    await startMissedWorkflows(id, from, api);
    expect(await listRuns(client, id)).toEqual([]);

    const worker = await startAppOn(database.url, {
      HOLDFAST_TASK_QUEUE: assertDefined(api.env.HOLDFAST_TASK_QUEUE, 'task queue'),
      HOLDFAST_ROLE: 'worker',
    });
    try {
      await waitForRuns(client, id, (runs) => runs.length >= 9);
      await worker.deps.catchUp.catchUpAll(timeoutSignal());
      expectCaughtUp(await listRuns(client, id), from);
    } finally {
      await worker.stop();
      await withTemporalSchedule(id, (handle) => handle.delete(), api);
      await api.stop();
      await database.drop();
    }
  });

  it('while a restart took minutes: all of them run with the default window', async () => {
    const client = clientOfNewTenant();
    const { id } = await createMinutelySchedule(client, { overlapPolicy: 'allowAll' });
    await backdateSchedule(fixture.app, id, minuteFromNow(-20));
    await fixture.app.deps.catchUp.catchUpAll(timeoutSignal());
    const runs = await waitForRuns(client, id, (all) => all.length >= 20);
    expect(new Set(runs.map(({ outcome }) => outcome))).toEqual(new Set(['fired']));
  });

  it('while Temporal was unavailable', async () => {
    const client = clientOfNewTenant();
    const { id } = await createMinutelySchedule(client, {
      overlapPolicy: 'allowAll',
      catchupWindowSeconds: 100,
    });
    const from = minuteFromNow(-2_500);
    await backdateSchedule(fixture.app, id, from);
    await fixture.app.deps.catchUp.catchUpAll(timeoutSignal());
    type OutcomeRow = {
      outcome: string;
      reason: string | null;
      count: number;
      min: Date;
      max: Date;
    };
    const { rows } = await fixture.app.deps.db.raw<{ rows: OutcomeRow[] }>(
      `SELECT outcome, reason, count(*)::int, min(due_at), max(due_at)
       FROM schedule_runs WHERE schedule_id = ? GROUP BY 1, 2 ORDER BY 1`,
      [id],
    );
    const fired = assertDefined(rows[0], 'fired runs');
    const missed = assertDefined(rows[1], 'missed runs');
    expect(fired).toMatchObject({ outcome: 'fired' });
    expect(missed).toMatchObject({ outcome: 'skipped', reason: 'missed', min: from });
    const total = fired.count + missed.count;
    expect(total).toBeGreaterThanOrEqual(2_500);
    expect(fired.max.getTime() - missed.min.getTime()).toBe((total - 1) * 60_000);
    const skipped = await listEventData(client, 'schedule.skipped', id);
    const counts = skipped.map(({ occurrences }) => Number(occurrences));
    expect(counts.reduce((sum, count) => sum + count, 0)).toBe(missed.count);
  });

  it('after it is paused, resumed, changed and deleted', async () => {
    const client = clientOfNewTenant();
    const { id } = await createMinutelySchedule(client, { catchupWindowSeconds: WINDOW_SECONDS });
    const path = `/api/schedules/${id}`;
    /** Expects at least `count` runs with this reason, and no others. */
    const expectReasons = async (reason: string, count: number) => {
      const reasons = (await listRuns(client, id)).map((run) => run.reason);
      expect(reasons.length).toBeGreaterThanOrEqual(count);
      expect(new Set(reasons)).toEqual(new Set([reason]));
    };

    await backdateSchedule(fixture.app, id, minuteFromNow(-10));
    await client.post(`${path}/pause`, {}).expect(200);
    const runs = await listRuns(client, id);
    expect(summarizeOutcomes(runs.slice(0, 6))).toEqual(
      Array.from({ length: 6 }, () => 'skipped missed'),
    );
    expect(runs.at(-1)).toMatchObject({ outcome: 'skipped', reason: 'paused' });

    await forgetRuns(id);
    await backdateSchedule(fixture.app, id, minuteFromNow(-5));
    await client.post(`${path}/resume`, { reason: 'done' }).expect(200);
    await expectReasons('paused', 6);

    await forgetRuns(id);
    await backdateSchedule(fixture.app, id, minuteFromNow(-1));
    await client.put(path, { cronExpression: '0 0 1 1 *' }).expect(200);
    await expectReasons('changed', 2);

    await client.put(path, { cronExpression: '* * * * *' }).expect(200);
    await forgetRuns(id);
    const minute = minutesFromNow();
    await backdateSchedule(fixture.app, id, minute(0));
    await client.delete(path).expect(204);
    await expectReasons('deleted', 1);
    expect(await fireOccurrence(id, minute(0))).toEqual({ outcome: 'not_due' });
  });

  it('after its bounds change: occurrences inside the new bounds can still run', async () => {
    const client = clientOfNewTenant();
    const { id } = await createMinutelySchedule(client, {
      catchupWindowSeconds: 3_600,
      overlapPolicy: 'allowAll',
      cronExpression: '*/10 * * * *',
    });
    const step = tenMinutesFromNow();
    await backdateSchedule(fixture.app, id, step(-2));
    await client.put(`/api/schedules/${id}`, { maxRuns: 100 }).expect(200);
    expect(await listRuns(client, id)).toEqual([]);
    await client.put(`/api/schedules/${id}`, { startAt: step(-1).toISOString() }).expect(200);
    expect((await listRuns(client, id)).map(({ dueAt, reason }) => [dueAt, reason])).toEqual([
      [step(-2).toISOString(), 'changed'],
    ]);
    expect((await fireOccurrence(id, step(-1))).outcome).toBe('fired');
  });

  it('after the last run, if that was not the first pending occurrence', async () => {
    const client = clientOfNewTenant();
    const { id } = await createMinutelySchedule(client, {
      catchupWindowSeconds: 3_600,
      maxRuns: 1,
      cronExpression: '*/10 * * * *',
    });
    const step = tenMinutesFromNow();
    await backdateSchedule(fixture.app, id, step(-3));
    expect((await fireOccurrence(id, step(-2))).outcome).toBe('fired');
    const [first, second, ...others] = summarizeOutcomes(await listRuns(client, id));
    expect([first, second]).toEqual(['skipped ended', 'fired']);
    expect(others.length).toBeGreaterThanOrEqual(2);
    expect(new Set(others)).toEqual(new Set(['skipped ended']));
  });

  it('when its owner loses the permission, and another user takes over', async () => {
    const owner = await createUser(fixture.app, { roleId: 'operator', tenantId: 'lost' });
    const overseer = fixture.app.client.as({
      actor: 'root',
      roles: 'platform-admin',
      tenant: 'lost',
    });
    const { id }: ScheduleRecord = await createMinutelySchedule(owner.client, {
      overlapPolicy: 'allowAll',
      catchupWindowSeconds: WINDOW_SECONDS,
    });
    const minute = minutesFromNow();
    await backdateSchedule(fixture.app, id, minute(-1));
    const root = admin(fixture.app);
    const assignments = await root
      .get<PageOf<AssignmentRecord>>(`/api/rbac/assignments?userId=${owner.id}`)
      .expect(200);
    const assignment = assertDefined(assignments.items[0], 'assignment');
    await root.delete(`/api/rbac/assignments/${assignment.id}`).expect(204);
    expect(await fireOccurrence(id, minute(-1))).toMatchObject({
      outcome: 'skipped',
      reason: 'owner_denied',
    });
    const problem = await overseer.post<ProblemBody>(`/api/schedules/${id}/trigger`).expect(409);
    expect(problem.code).toBe('schedule_not_runnable');

    await overseer.put(`/api/schedules/${id}`, { takeOver: true }).expect(200);
    await backdateSchedule(fixture.app, id, minute(-1));
    await forgetRuns(id);
    expect(await fireOccurrence(id, minute(-1))).toMatchObject({ outcome: 'fired' });
    expect((await readSchedule(overseer, id)).owner).toBe('root');
  });
});
