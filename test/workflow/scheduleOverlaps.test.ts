import { describe, expect, it } from '@jest/globals';
import type { TestClient } from '../support/client.ts';
import { eventually } from '../support/eventually.ts';
import {
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

const { bed, fire, inTenant } = withSchedules();

describe('while a job of the schedule has not ended', () => {
  const begun = async (client: TestClient, policy: string) => {
    const { id } = await everyMinute(client, {
      ...sleeping,
      overlapPolicy: policy,
      catchupWindowSeconds: 600,
    });
    await neglect(bed.app, id, minute(-5));
    const first = await fire(id, minute(-5));
    await eventually(
      () => jobOf(client, first.jobId ?? ''),
      (job) => job.status === 'running',
    );
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
    expect(inShort(runs).map((line) => line.slice(6))).toEqual([
      'fired',
      'fired',
      'skipped overlap',
    ]);
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

  it('cancelOther replaces what waits, and cancels at once what has not begun', async () => {
    const client = inTenant();
    const { id, jobId } = await begun(client, 'cancelOther');
    await fire(id, minute(-4));
    expect(await fire(id, minute(-3))).toEqual({ outcome: 'buffered' });
    expect(inShort(await logOf(client, id)).map((line) => line.slice(6, 21))).toEqual([
      'fired',
      'skipped overlap',
      expect.stringMatching(/buffered|fired/),
    ]);
    const told = (await client.get(`/api/events?type=schedule.skipped&subject=${id}`)).body.items;
    expect(told.map((event: any) => event.data.reason)).toEqual(['overlap']);
    const runs = await untilLog(client, id, ([, , third]) => third?.outcome === 'fired');
    expect((await jobOf(client, jobId)).status).toBe('cancelled');
    await cancel(client, runs[2].jobId);
    await eventually(
      () => jobOf(client, runs[2].jobId),
      (job) => job.status === 'cancelled',
    );

    // A job that nobody has begun stands in nobody's way.
    const made = await everyMinute(client, {
      ...sleeping,
      overlapPolicy: 'cancelOther',
      catchupWindowSeconds: 600,
    });
    await neglect(bed.app, made.id, minute(-5));
    const first = await fire(made.id, minute(-5));
    await eventually(
      () => jobOf(client, first.jobId ?? ''),
      (job) => job.status === 'running',
    );
    await bed.app.deps
      .db('jobs')
      .where({ id: first.jobId })
      .update({ status: 'queued', run_id: 'nobody' });
    const second = await fire(made.id, minute(-4));
    expect(second.outcome).toBe('fired');
    await cancel(client, second.jobId ?? '');
  });

  it('a buffered run is not released for an owner who has lost the right, nor beyond the last run', async () => {
    const client = inTenant();
    const { id, jobId } = await begun(client, 'bufferOne');
    await fire(id, minute(-4));
    await bed.app.deps
      .db('schedules')
      .where({ id })
      .update({
        owner: JSON.stringify({ actorId: 'gone', userId: 'usr_00000000000000000000000000' }),
      });
    await cancel(client, jobId);
    expect(
      (await untilLog(client, id, ([, second]) => second?.outcome !== 'buffered'))[1],
    ).toMatchObject({ outcome: 'skipped', reason: 'owner_denied' });

    const last = await begun(client, 'bufferOne');
    await fire(last.id, minute(-4));
    await client.put(`/api/schedules/${last.id}`, { overlapPolicy: 'allowAll', maxRuns: 2 });
    const fired = await fire(last.id, minute(-3));
    expect(fired.outcome).toBe('fired');
    expect((await logOf(client, last.id))[1]).toMatchObject({
      outcome: 'skipped',
      reason: 'ended',
    });
    expect((await client.get(`/api/schedules/${last.id}`)).body).toMatchObject({
      runCount: 2,
      state: 'ended',
    });
    for (const each of [last.jobId, fired.jobId ?? '']) await cancel(client, each);
  });

  it('a release that was lost is made up for', async () => {
    const client = inTenant();
    const { id, jobId } = await begun(client, 'bufferOne');
    await fire(id, minute(-4));
    // The job ends and nobody hears of it.
    await bed.app.deps
      .db('jobs')
      .where({ id: jobId })
      .update({ status: 'cancelled', finished_at: new Date() });
    await bed.app.deps.sweep.release(patience());
    expect((await logOf(client, id))[1]).toMatchObject({ outcome: 'fired' });
  });

  it('jobs that end and times that come at once leave nothing waiting', async () => {
    const client = inTenant();
    const { id } = await everyMinute(client, {
      overlapPolicy: 'bufferOne',
      catchupWindowSeconds: 3_600,
    });
    await neglect(bed.app, id, minute(-40));
    for (let at = -40; at < -1; at += 3)
      await Promise.all(
        [fire(id, minute(at)), fire(id, minute(at + 1)), fire(id, minute(at + 2))].map((each) =>
          each.catch(() => undefined),
        ),
      );
    await eventually(
      () => logOf(client, id),
      (runs) => runs.every(({ outcome }) => outcome !== 'buffered'),
    );
    await bed.app.deps.sweep.account(patience());
    const runs = await eventually(
      () => logOf(client, id),
      (all) => all.every(({ outcome }) => outcome !== 'buffered'),
    );
    expect(runs.length).toBeGreaterThanOrEqual(40);
    expect(new Set(runs.map(({ dueAt }) => dueAt)).size).toBe(runs.length);
  });
});

describe('on demand', () => {
  it('a trigger runs now, paused or not, as the owner, and counts for no time due', async () => {
    const client = bed.app.client.as({ tenant: 'by-hand' });
    const { id } = await everyMinute(client, { enabled: false, maxRuns: 1 });
    const other = bed.app.client.as({ actor: 'bob', tenant: 'by-hand' });
    const answer = await other.post(`/api/schedules/${id}/trigger`);
    expect(answer.status).toBe(202);
    expect(answer.body).toMatchObject({ kind: 'trigger', outcome: 'fired', actorId: 'bob' });
    expect((await client.get(answer.headers.get('location') ?? '')).body).toEqual(answer.body);
    expect(
      await eventually(
        () => jobOf(client, answer.body.jobId),
        (job) => job.status === 'succeeded',
      ),
    ).toMatchObject({ createdBy: 'alice' });
    expect((await client.get(`/api/schedules/${id}`)).body).toMatchObject({
      runCount: 0,
      state: 'paused',
      lastRun: { id: answer.body.id },
    });
  });

  it('a trigger with the same key runs once', async () => {
    const client = inTenant();
    const { id } = await everyMinute(client, { overlapPolicy: 'allowAll' });
    const answers = await Promise.all(
      [1, 2, 3].map(() =>
        client.post(`/api/schedules/${id}/trigger`, undefined, { 'idempotency-key': 'once' }),
      ),
    );
    expect(answers.some(({ status }) => status === 202)).toBe(true);
    const again = await client.post(`/api/schedules/${id}/trigger`, undefined, {
      'idempotency-key': 'once',
    });
    expect([again.status, again.body]).toEqual([
      202,
      answers.find(({ status }) => status === 202)?.body,
    ]);
    expect((await logOf(client, id)).filter(({ kind }) => kind === 'trigger')).toHaveLength(1);
  });

  it('a backfill makes the jobs of times that have not fired, once', async () => {
    const client = inTenant();
    const { id } = await everyMinute(client, {
      cronExpression: '0 * * * *',
      overlapPolicy: 'skip',
    });
    const hour = (hours: number) =>
      new Date(Math.floor(Date.now() / 3_600_000 + hours) * 3_600_000);
    await neglect(bed.app, id, hour(-2));
    await bed.app.deps.sweep.account(patience());
    const range = { since: hour(-5).toISOString(), until: hour(-1).toISOString() };
    const done = await client.post(`/api/schedules/${id}/backfill`, range, { prefer: 'wait=20' });
    expect(done.body).toMatchObject({
      type: 'schedule.backfill',
      status: 'succeeded',
      result: { times: 5, fired: 5 },
    });
    const again = await client.post(`/api/schedules/${id}/backfill`, range, { prefer: 'wait=20' });
    expect(again.body.result).toEqual({ times: 5, done_before: 5 });
    const runs = await logOf(client, id);
    expect(
      runs.filter(({ kind, outcome }) => kind === 'backfill' && outcome === 'fired'),
    ).toHaveLength(5);
    const list = await client.get(
      `/api/schedules/logs?scheduleId=${id}&kind=backfill&outcome=fired&limit=2`,
    );
    expect(list.body.items.map(({ dueAt }: any) => dueAt)).toEqual([
      hour(-1).toISOString(),
      hour(-2).toISOString(),
    ]);
    expect(
      (
        await client.get(
          `/api/schedules/logs?scheduleId=${id}&kind=backfill&limit=2&cursor=${list.body.nextCursor}`,
        )
      ).body.items[0].dueAt,
    ).toBe(hour(-3).toISOString());
  });

  it('a backfill leaves alone what has fired, or can fire still, and tries again what could not', async () => {
    const client = inTenant();
    const { id } = await everyMinute(client, {
      overlapPolicy: 'allowAll',
      catchupWindowSeconds: 3_600,
      cronExpression: '*/5 * * * *',
    });
    const five = (n: number) => new Date(Math.floor(Date.now() / 300_000 + n) * 300_000);
    await neglect(bed.app, id, five(-2));
    await fire(id, five(-2));
    const backfill = async (since: Date, until: Date) =>
      (
        await client.post(
          `/api/schedules/${id}/backfill`,
          { since: since.toISOString(), until: until.toISOString() },
          { prefer: 'wait=20' },
        )
      ).body.result;
    expect(await backfill(five(-2), five(-1))).toEqual({ times: 2, done_before: 2 });
    expect((await fire(id, five(-1))).outcome).toBe('fired');

    await bed.app.deps
      .db('schedules')
      .where({ id })
      .update({ job_type: 'core.sleep', payload: '{}' });
    expect(await backfill(five(-9), five(-8))).toEqual({ times: 2, failed: 2 });
    expect(
      (await logOf(client, id))
        .filter(({ kind }) => kind === 'backfill')
        .map(({ reason }) => reason),
    ).toEqual(['payload_invalid', 'payload_invalid']);
    await bed.app.deps.db('schedules').where({ id }).update({ job_type: 'core.echo' });
    expect(await backfill(five(-9), five(-8))).toEqual({ times: 2, fired: 2 });
  });

  it.each([
    [{ since: '2026-01-01T00:00:00Z', until: '2026-01-03T00:00:00Z' }, 'too_many'],
    [{ since: '2026-01-01T00:00:01Z', until: '2026-01-01T00:00:59Z' }, 'no_times'],
    [
      { since: new Date().toISOString(), until: new Date(Date.now() + 600_000).toISOString() },
      'future',
    ],
    [{ since: '2026-01-02T00:00:00Z', until: '2026-01-01T00:00:00Z' }, 'no_times'],
  ])('a backfill of %j is refused', async (range, code) => {
    const client = inTenant();
    const { id } = await everyMinute(client);
    const answer = await client.post(`/api/schedules/${id}/backfill`, range);
    expect([answer.status, answer.body.errors?.[0]?.code]).toEqual([400, code]);
  });
});
