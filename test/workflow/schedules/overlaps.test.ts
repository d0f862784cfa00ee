import { describe, expect, it } from '@jest/globals';
import type { RunRecord } from '../../../api/schedules/schemas.ts';
import { lockJobEnds } from '../../../db/schedules/schedules.ts';
import type { ProblemBody, TestClient } from '../../support/client.ts';
import { eventually } from '../../support/eventually.ts';
import {
  backdateSchedule,
  createMinutelySchedule,
  jobIdOf,
  listAudit,
  listEventData,
  listRuns,
  minutesFromNow,
  readJob,
  readSchedule,
  sleepingJob,
  summarizeOutcomes,
  timeoutSignal,
  useScheduleFixture,
  waitForRuns,
} from '../../support/schedules.ts';
import { admin } from '../../support/users.ts';
import { waitingForLock } from '../../support/waitingForLock.ts';

const { fixture, fireOccurrence, clientOfNewTenant } = useScheduleFixture();

const overlapSkipped = { outcome: 'skipped', reason: 'overlap' };
const hasFired = (run: RunRecord | undefined) => run?.outcome === 'fired';

describe('while a job of the schedule is unfinished', () => {
  /** A schedule whose first occurrence, five minutes ago, has a running job. */
  const startRunningJob = async (
    client: TestClient,
    overlapPolicy: string,
    fields: object = {},
  ) => {
    const { id } = await createMinutelySchedule(client, {
      ...sleepingJob,
      overlapPolicy,
      catchupWindowSeconds: 600,
      ...fields,
    });
    const minute = minutesFromNow();
    await backdateSchedule(fixture.app, id, minute(-5));
    const jobId = jobIdOf(await fireOccurrence(id, minute(-5)));
    await eventually(
      () => readJob(client, jobId),
      ({ status }) => status === 'running',
    );
    return { id, jobId, fire: (minutes: number) => fireOccurrence(id, minute(minutes)) };
  };
  const cancel = (client: TestClient, jobId: string) => client.post(`/api/jobs/${jobId}/cancel`);
  const waitUntilFired = async (client: TestClient, id: string, index: number) => {
    const runs = await waitForRuns(client, id, (all) => hasFired(all[index]));
    return { runs, jobId: jobIdOf(runs[index] ?? {}) };
  };

  it('skip skips occurrences and rejects a trigger', async () => {
    const client = clientOfNewTenant();
    const { id, jobId, fire } = await startRunningJob(client, 'skip');
    expect(await fire(-4)).toEqual(overlapSkipped);
    const problem = await client.post<ProblemBody>(`/api/schedules/${id}/trigger`).expect(409);
    expect(problem.code).toBe('schedule_busy');
    await cancel(client, jobId);
  });

  it('allowAll runs the jobs side by side', async () => {
    const client = clientOfNewTenant();
    const { jobId, fire } = await startRunningJob(client, 'allowAll');
    const second = await fire(-4);
    expect(second.outcome).toBe('fired');
    for (const each of [jobId, jobIdOf(second)]) await cancel(client, each);
  });

  it('bufferOne buffers one occurrence, which runs when the job has ended', async () => {
    const client = clientOfNewTenant();
    const { id, jobId, fire } = await startRunningJob(client, 'bufferOne');
    expect(await fire(-4)).toEqual({ outcome: 'buffered' });
    expect(await fire(-3)).toEqual(overlapSkipped);
    await cancel(client, jobId);
    const released = await waitUntilFired(client, id, 1);
    expect(summarizeOutcomes(released.runs).slice(0, 3)).toEqual([
      'fired',
      'fired',
      'skipped overlap',
    ]);
    expect((await readSchedule(client, id)).runCount).toBe(2);
    await cancel(client, released.jobId);
  });

  it.each(['bufferOne', 'cancelOther'])(
    '%s runs the buffered occurrence that is the last one',
    async (policy) => {
      const client = clientOfNewTenant();
      const { id, jobId, fire } = await startRunningJob(client, policy, { maxRuns: 2 });
      expect(await fire(-4)).toEqual({ outcome: 'buffered' });
      await cancel(client, jobId);
      const released = await waitUntilFired(client, id, 1);
      expect(await readSchedule(client, id)).toMatchObject({ runCount: 2, state: 'ended' });
      expect(await listAudit(admin(fixture.app), id, '&action=schedule.end')).toHaveLength(1);
      expect(await listEventData(client, 'schedule.ended', id)).toMatchObject([{ scheduleId: id }]);
      await cancel(client, released.jobId);
    },
  );

  it('a limit that the runs have reached ends the schedule and skips a buffered run', async () => {
    const client = clientOfNewTenant();
    const { id, jobId, fire } = await startRunningJob(client, 'bufferOne');
    await fire(-4);
    await client.put(`/api/schedules/${id}`, { maxRuns: 1 }).expect(200);
    expect((await listRuns(client, id))[1]).toMatchObject({ outcome: 'skipped', reason: 'ended' });
    expect(await readSchedule(client, id)).toMatchObject({ runCount: 1, state: 'ended' });
    await client.put(`/api/schedules/${id}`, { description: 'has ended' }).expect(200);
    expect(await listAudit(admin(fixture.app), id, '&action=schedule.end')).toHaveLength(1);
    expect(await listEventData(client, 'schedule.ended', id)).toMatchObject([{ scheduleId: id }]);
    await cancel(client, jobId);
  });

  it('pausing the schedule skips a buffered run', async () => {
    const client = clientOfNewTenant();
    const { id, jobId, fire } = await startRunningJob(client, 'bufferOne');
    await fire(-4);
    await client.post(`/api/schedules/${id}/pause`, {}).expect(200);
    expect((await listRuns(client, id))[1]).toMatchObject({ outcome: 'skipped', reason: 'paused' });
    await cancel(client, jobId);
  });

  it('the policy skip skips a buffered run', async () => {
    const client = clientOfNewTenant();
    const { id, jobId, fire } = await startRunningJob(client, 'bufferOne');
    await fire(-4);
    await client.put(`/api/schedules/${id}`, { overlapPolicy: 'skip' }).expect(200);
    expect((await listRuns(client, id))[1]).toMatchObject(overlapSkipped);
    await cancel(client, jobId);
  });

  it('the policy allowAll lets catch-up run a buffered run beside the job', async () => {
    const client = clientOfNewTenant();
    const { id, jobId, fire } = await startRunningJob(client, 'bufferOne');
    await fire(-4);
    await client.put(`/api/schedules/${id}`, { overlapPolicy: 'allowAll' }).expect(200);
    await fixture.app.deps.catchUp.releaseAll(timeoutSignal());
    const runs = await listRuns(client, id);
    expect(runs[1]).toMatchObject({ outcome: 'fired' });
    for (const each of [jobId, jobIdOf(runs[1] ?? {})]) await cancel(client, each);
  });

  it('cancelOther cancels the job, and runs when it has cleaned up', async () => {
    const client = clientOfNewTenant();
    const { id, jobId, fire } = await startRunningJob(client, 'cancelOther');
    expect(await fire(-4)).toEqual({ outcome: 'buffered' });
    const next = await waitUntilFired(client, id, 1);
    const before = await readJob(client, jobId);
    const after = await readJob(client, next.jobId);
    expect(before.status).toBe('cancelled');
    expect(Date.parse(after.createdAt)).toBeGreaterThanOrEqual(Date.parse(before.finishedAt ?? ''));
    await cancel(client, next.jobId);
  });

  it('cancelOther replaces a buffered run', async () => {
    const client = clientOfNewTenant();
    const { id, jobId, fire } = await startRunningJob(client, 'cancelOther');
    await fire(-4);
    expect(await fire(-3)).toEqual({ outcome: 'buffered' });
    expect(summarizeOutcomes(await listRuns(client, id)).slice(0, 3)).toEqual([
      'fired',
      'skipped overlap',
      expect.stringMatching(/^(buffered|fired)$/),
    ]);
    expect(await listEventData(client, 'schedule.skipped', id)).toMatchObject([
      { reason: 'overlap' },
    ]);
    const next = await waitUntilFired(client, id, 2);
    expect((await readJob(client, jobId)).status).toBe('cancelled');
    await cancel(client, next.jobId);
    await eventually(
      () => readJob(client, next.jobId),
      ({ status }) => status === 'cancelled',
    );
  });

  it('cancelOther cancels a queued job immediately and runs', async () => {
    const client = clientOfNewTenant();
    const { jobId, fire } = await startRunningJob(client, 'cancelOther');
    await fixture.app.deps
      .db('jobs')
      .where({ id: jobId })
      .update({ status: 'queued', run_id: 'nobody' });
    const second = await fire(-4);
    expect(second.outcome).toBe('fired');
    await cancel(client, jobIdOf(second));
  });

  it('a buffered run is skipped if the owner has lost the permission', async () => {
    const client = clientOfNewTenant();
    const { id, jobId, fire } = await startRunningJob(client, 'bufferOne');
    await fire(-4);
    const owner = { actorId: 'deleted', userId: 'usr_00000000000000000000000000' };
    await fixture.app.deps
      .db('schedules')
      .where({ id })
      .update({ owner: JSON.stringify(owner) });
    await cancel(client, jobId);
    const runs = await waitForRuns(client, id, ([, second]) => second?.outcome !== 'buffered');
    expect(runs[1]).toMatchObject({ outcome: 'skipped', reason: 'owner_denied' });
  });

  it('a buffered run is skipped if the schedule ends', async () => {
    const client = clientOfNewTenant();
    const { id, jobId, fire } = await startRunningJob(client, 'bufferOne');
    await fire(-4);
    const change = { overlapPolicy: 'allowAll', maxRuns: 2 };
    await client.put(`/api/schedules/${id}`, change).expect(200);
    const last = await fire(-3);
    expect(last.outcome).toBe('fired');
    expect((await listRuns(client, id))[1]).toMatchObject({ outcome: 'skipped', reason: 'ended' });
    expect(await readSchedule(client, id)).toMatchObject({ runCount: 2, state: 'ended' });
    for (const each of [jobId, jobIdOf(last)]) await cancel(client, each);
  });

  it('catch-up runs a buffered run whose start was lost', async () => {
    const client = clientOfNewTenant();
    const { id, jobId, fire } = await startRunningJob(client, 'bufferOne');
    await fire(-4);
    // The job ends without starting the buffered run.
    await fixture.app.deps
      .db('jobs')
      .where({ id: jobId })
      .update({ status: 'cancelled', finished_at: new Date() });
    await fixture.app.deps.catchUp.releaseAll(timeoutSignal());
    expect((await listRuns(client, id))[1]).toMatchObject({ outcome: 'fired' });
  });

  it('a job that is ending is waited for, so that nothing is buffered behind it', async () => {
    const { db } = fixture.app.deps;
    const { id, jobId, fire } = await startRunningJob(clientOfNewTenant(), 'bufferOne');
    const fired = await db.transaction(async (trx) => {
      await lockJobEnds(trx, id);
      const firing = fire(-4);
      await eventually(
        () => waitingForLock(db, 'advisory'),
        (waiting) => waiting.length > 0,
      );
      await trx('jobs')
        .where({ id: jobId })
        .update({ status: 'cancelled', finished_at: new Date() });
      return { firing };
    });
    expect(await fired.firing).toMatchObject({ outcome: 'fired' });
  });

  it('concurrent occurrences and ending jobs leave no run buffered', async () => {
    const client = clientOfNewTenant();
    const { id } = await createMinutelySchedule(client, {
      overlapPolicy: 'bufferOne',
      catchupWindowSeconds: 3_600,
    });
    const minute = minutesFromNow();
    await backdateSchedule(fixture.app, id, minute(-20));
    for (let at = -20; at < -1; at += 3)
      await Promise.allSettled([at, at + 1, at + 2].map((n) => fireOccurrence(id, minute(n))));
    const isDecided = (runs: RunRecord[]) => runs.every(({ outcome }) => outcome !== 'buffered');
    await waitForRuns(client, id, isDecided);
    await fixture.app.deps.catchUp.catchUpAll(timeoutSignal());
    const runs = await waitForRuns(client, id, isDecided);
    expect(runs.length).toBeGreaterThanOrEqual(20);
    expect(new Set(runs.map(({ dueAt }) => dueAt)).size).toBe(runs.length);
  });
});
