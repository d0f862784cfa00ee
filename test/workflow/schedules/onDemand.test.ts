import { describe, expect, it } from '@jest/globals';
import type { JobRecord } from '../../../api/jobs/schemas.ts';
import type { RunRecord } from '../../../api/schedules/schemas.ts';
import type { ProblemBody, TestClient } from '../../support/client.ts';
import { countRuns } from '../../../db/schedules/runDays.ts';
import { eventually } from '../../support/eventually.ts';
import {
  backdateSchedule,
  createMinutelySchedule,
  fieldErrors,
  jobIdOf,
  listEventData,
  listRuns,
  readJob,
  readSchedule,
  timeoutSignal,
  useScheduleFixture,
  type PageOf,
} from '../../support/schedules.ts';
import { waitingForLock } from '../../support/waitingForLock.ts';

const { fixture, fireOccurrence, clientOfNewTenant } = useScheduleFixture();

/** Counts steps of `seconds` from the present one, also when the clock reaches the next. */
function stepsFromNow(seconds: number): (steps: number) => Date {
  const ms = seconds * 1_000;
  const present = Math.floor(Date.now() / ms);
  return (steps) => new Date((present + steps) * ms);
}

describe('a trigger', () => {
  it('runs a paused schedule now as its owner, and does not count towards maxRuns', async () => {
    const owner = fixture.app.client.as({ tenant: 'by-hand' });
    const { id } = await createMinutelySchedule(owner, { enabled: false, maxRuns: 1 });
    const other = fixture.app.client.as({ actor: 'bob', tenant: 'by-hand' });
    const { status, headers, body } = await other.post<RunRecord>(`/api/schedules/${id}/trigger`);
    expect(status).toBe(202);
    expect(body).toMatchObject({ kind: 'trigger', outcome: 'fired', actorId: 'bob' });
    const location = headers.get('location') ?? '';
    const { id: runId, jobId } = body;
    expect(await owner.get(location).expect(200)).toMatchObject({ id: runId, jobId });
    const job = await eventually(
      () => readJob(owner, jobIdOf(body)),
      ({ status: jobStatus }) => jobStatus === 'succeeded',
    );
    expect(job.createdBy).toBe('alice');
    expect(await readSchedule(owner, id)).toMatchObject({
      runCount: 0,
      state: 'paused',
      lastRun: { id: body.id, jobStatus: 'succeeded', finishedAt: job.finishedAt },
    });
  });

  it('runs once for requests with the same idempotency key', async () => {
    const client = clientOfNewTenant();
    const { id } = await createMinutelySchedule(client, { overlapPolicy: 'allowAll' });
    const trigger = () =>
      client.post<RunRecord>(`/api/schedules/${id}/trigger`, undefined, {
        'idempotency-key': 'once',
      });
    const responses = await Promise.all([trigger(), trigger(), trigger()]);
    const accepted = responses.find(({ status }) => status === 202);
    expect(accepted).toBeDefined();
    const replayed = await trigger().expect(202);
    expect(replayed.id).toBe(accepted?.body.id);
    const triggers = (await listRuns(client, id)).filter(({ kind }) => kind === 'trigger');
    expect(triggers).toHaveLength(1);
  });
});

describe('a backfill', () => {
  const backfill = (client: TestClient, id: string, since: Date, until: Date) =>
    client
      .post<JobRecord>(
        `/api/schedules/${id}/backfill`,
        { since: since.toISOString(), until: until.toISOString() },
        { prefer: 'wait=20' },
      )
      .expect(202);
  const backfillRuns = async (client: TestClient, id: string) =>
    (await listRuns(client, id)).filter(({ kind }) => kind === 'backfill');

  it('runs occurrences that have not run, once', async () => {
    const client = clientOfNewTenant();
    const { id } = await createMinutelySchedule(client, {
      cronExpression: '0 * * * *',
      overlapPolicy: 'skip',
    });
    const hour = stepsFromNow(3_600);
    await backdateSchedule(fixture.app, id, hour(-2));
    await fixture.app.deps.catchUp.catchUpAll(timeoutSignal());
    const preview = (since: Date, until: Date) =>
      client
        .post<object>(`/api/schedules/${id}/backfill/preview`, {
          since: since.toISOString(),
          until: until.toISOString(),
        })
        .expect(200);
    const none = { toRun: 0, hasRun: 0, pending: 0, purged: 0, held: 0 };
    expect(await preview(hour(-5), hour(-1))).toEqual({ ...none, occurrences: 5, toRun: 5 });
    const job = await backfill(client, id, hour(-5), hour(-1));
    expect(job).toMatchObject({
      type: 'schedule.backfill',
      status: 'succeeded',
      result: { occurrences: 5, fired: 5 },
    });
    expect(await preview(hour(-6), hour(-1))).toEqual({
      ...none,
      occurrences: 6,
      toRun: 1,
      hasRun: 5,
    });
    const repeated = await backfill(client, id, hour(-5), hour(-1));
    expect(repeated.result).toEqual({ occurrences: 5, already_handled: 5 });
    const outcomes = (await backfillRuns(client, id)).map(({ outcome }) => outcome);
    expect(outcomes).toEqual(['fired', 'fired', 'fired', 'fired', 'fired']);

    const path = `/api/schedules/logs?scheduleId=${id}&kind=backfill&outcome=fired&limit=2`;
    const first = await client.get<PageOf<RunRecord>>(path).expect(200);
    const second = await client
      .get<PageOf<RunRecord>>(`${path}&cursor=${first.nextCursor}`)
      .expect(200);
    const [latest, ...earlier] = [...first.items, ...second.items].map(({ dueAt }) => dueAt);
    expect(latest).toBe(hour(-1).toISOString());
    expect(earlier.slice(0, 2)).toEqual([hour(-2).toISOString(), hour(-3).toISOString()]);
  });

  it('is counted by day with the skipped occurrences, as far as runs are counted', async () => {
    const client = clientOfNewTenant();
    const { id } = await createMinutelySchedule(client, {
      cronExpression: '0 0 * * *',
      timezone: 'Asia/Tokyo',
    });
    // Midnight in Tokyo; the day before yesterday is missed, yesterday too, but it is run later.
    const day = stepsFromNow(86_400);
    const due = (days: number) => new Date(day(days).getTime() - 9 * 3_600_000);
    await backdateSchedule(fixture.app, id, due(-2));
    await fixture.app.deps.catchUp.catchUpAll(timeoutSignal());
    await backfill(client, id, due(-1), due(-1));
    type Day = { date: string; start: string; end: string; runs: object[] };
    type Days = { timezone: string; days: Day[] };
    const { timezone, days } = await eventually(
      async () => client.get<Days>(`/api/schedules/${id}/days?days=4`).expect(200),
      (read) => JSON.stringify(read).includes('"succeeded"'),
    );
    expect(timezone).toBe('Asia/Tokyo');
    expect(days).toHaveLength(4);
    expect(days.map(({ end }) => end)).toEqual([
      ...days.slice(1).map(({ start }) => start),
      new Date(Date.parse(days[3]?.start ?? '') + 86_400_000).toISOString(),
    ]);
    const missed = { outcome: 'skipped', reason: 'missed', jobStatus: null, count: 1 };
    const runsOf = (at: Date) =>
      days.find(({ date }) => date === at.toISOString().slice(0, 10))?.runs;
    expect(runsOf(day(-2))).toEqual([missed]);
    expect(runsOf(day(-1))).toEqual([
      { outcome: 'fired', reason: null, jobStatus: 'succeeded', count: 1 },
      missed,
    ]);

    const bounds = [due(-3), due(-2), due(-1), due(0)];
    const { db } = fixture.app.deps;
    const cut = await countRuns(db, id, bounds, 2);
    expect(cut?.countedAfter).toEqual(due(-1));
    expect((await countRuns(db, id, bounds))?.countedAfter).toBeNull();
  });

  it('is the last run when it replaces the latest one, with the end of its job', async () => {
    const client = clientOfNewTenant();
    // Temporal starts none of its occurrences in the meantime.
    const { id } = await createMinutelySchedule(client, {
      cronExpression: '0 0 1 * *',
      catchupWindowSeconds: 10,
    });
    const now = new Date();
    const month = (months: number) =>
      new Date(Date.UTC(now.getUTCFullYear(), now.getUTCMonth() + months));
    const latest = month(-1);
    const lastRun = async () => (await readSchedule(client, id)).lastRun;
    await backdateSchedule(fixture.app, id, month(-3));
    await fixture.app.deps.catchUp.catchUpAll(timeoutSignal());
    await fixture.app.deps
      .db('schedule_runs')
      .where({ schedule_id: id })
      .where('due_at', '>', latest)
      .delete();
    const [missed] = (await listRuns(client, id)).slice(-1);
    expect(missed).toMatchObject({ reason: 'missed', jobStatus: null, finishedAt: null });
    await fixture.app.deps.db('schedules').where({ id }).update({ last_run_id: missed?.id });
    // A backfill that fails is replaced by the next one.
    const setType = (job_type: string) =>
      fixture.app.deps.db('schedules').where({ id }).update({ job_type, payload: '{}' });
    await setType('core.sleep');
    await backfill(client, id, latest, latest);
    expect(await lastRun()).toMatchObject({ kind: 'backfill', reason: 'payload_invalid' });
    await setType('core.echo');
    await backfill(client, id, latest, latest);
    const { jobId, ...run } = (await eventually(
      lastRun,
      (found) => found?.jobStatus === 'succeeded',
    )) ?? { jobId: null };
    expect(run).toMatchObject({ kind: 'backfill', outcome: 'fired', jobErrorCode: null });
    const { startedAt, finishedAt } = await readJob(client, jobIdOf({ jobId }));
    expect(run).toMatchObject({ startedAt, finishedAt });
  });

  it('leaves out occurrences that have run or can still run, and retries failed ones', async () => {
    const client = clientOfNewTenant();
    const { id } = await createMinutelySchedule(client, {
      overlapPolicy: 'allowAll',
      catchupWindowSeconds: 3_600,
      cronExpression: '*/5 * * * *',
    });
    const step = stepsFromNow(300);
    const resultOf = async (since: Date, until: Date) =>
      (await backfill(client, id, since, until)).result;
    const updateRow = (values: object) =>
      fixture.app.deps.db('schedules').where({ id }).update(values);
    await backdateSchedule(fixture.app, id, step(-2));
    await fireOccurrence(id, step(-2));
    expect(await resultOf(step(-2), step(-1))).toEqual({ occurrences: 2, already_handled: 2 });
    expect((await fireOccurrence(id, step(-1))).outcome).toBe('fired');

    await updateRow({ job_type: 'core.sleep', payload: '{}' });
    expect(await resultOf(step(-9), step(-8))).toEqual({ occurrences: 2, failed: 2 });
    const failed = await backfillRuns(client, id);
    expect(failed.map(({ reason }) => reason)).toEqual(['payload_invalid', 'payload_invalid']);
    const events = await listEventData(client, 'schedule.failed', id);
    expect(events.map(({ runId }) => runId).sort()).toEqual(failed.map((run) => run.id).sort());
    await updateRow({ job_type: 'core.echo' });
    expect(await resultOf(step(-9), step(-8))).toEqual({ occurrences: 2, fired: 2 });
  });

  it('ends when the schedule becomes one that who started it may not run', async () => {
    const client = clientOfNewTenant();
    const { id } = await createMinutelySchedule(client, { cronExpression: '0 * * * *' });
    const hour = stepsFromNow(3_600);
    const { db } = fixture.app.deps;
    const started = await db.transaction(async (trx) => {
      await trx('schedules').where({ id }).forUpdate().select('id');
      const backfilling = backfill(client, id, hour(-5), hour(-1));
      await eventually(
        () => waitingForLock(db, 'transactionid'),
        (waiting) => waiting.length > 0,
      );
      await trx('schedules')
        .where({ id })
        .update({ job_type: 'backup.restore', payload: '{"backupId":"bkp_x"}', version: 2 });
      return { backfilling: Promise.resolve(backfilling) };
    });
    expect(await started.backfilling).toMatchObject({
      status: 'failed',
      error: { code: 'permission_lost' },
    });
    expect(await backfillRuns(client, id)).toEqual([]);
  });

  const tenMinutesAhead = new Date(Date.now() + 600_000).toISOString();
  it.each([
    ['too_many', { since: '2026-01-01T00:00:00Z', until: '2026-01-03T00:00:00Z' }],
    ['no_occurrences', { since: '2026-01-01T00:00:01Z', until: '2026-01-01T00:00:59Z' }],
    ['future', { since: new Date().toISOString(), until: tenMinutesAhead }],
    ['no_occurrences', { since: '2026-01-02T00:00:00Z', until: '2026-01-01T00:00:00Z' }],
  ])('is rejected as %s for %j', async (code, interval) => {
    const client = clientOfNewTenant();
    const { id } = await createMinutelySchedule(client);
    const problem = await client
      .post<ProblemBody>(`/api/schedules/${id}/backfill`, interval)
      .expect(400);
    expect(fieldErrors(problem)).toEqual([['/until', code]]);
  });
});
