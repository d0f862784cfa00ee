import { beforeAll, expect, test } from '@jest/globals';
import type { ApprovalRecord } from '../../../api/approvals/schemas.ts';
import type { JobRecord } from '../../../api/jobs/schemas.ts';
import type { ScheduleRecord } from '../../../api/schedules/schemas.ts';
import { resumeSchedules } from '../../../db/backups/resumeSchedules.ts';
import type { TestApp } from '../../support/app.ts';
import { approve, createRequest, readRequest, sleepJob } from '../../support/approvals.ts';
import {
  backupCreator,
  recover,
  restorer,
  withBackups,
  type BackupFixture,
} from '../../support/backups.ts';
import type { TestClient } from '../../support/client.ts';
import { withClockAhead } from '../../support/clock.ts';
import { eventually } from '../../support/eventually.ts';
import { hasShownTimes } from '../../support/shownTimes.ts';

let fixture: BackupFixture;
let app: TestApp;
let root: TestClient;
withBackups((started) => {
  fixture = started;
  ({ app, root } = started);
});

const readJob = (id: string) => root.get<JobRecord>(`/api/jobs/${id}`).expect(200);
const untilEnded = (id: string) =>
  eventually(
    () => readJob(id),
    ({ status }) => status === 'cancelled',
  );

/** A request whose bound job runs until it is cancelled. */
async function runningRequest(): Promise<ApprovalRecord & { jobId: string }> {
  const ann = app.client.as({ actor: 'ann', roles: 'platform-admin', tenant: 'platform' });
  const { id } = await createRequest(ann, sleepJob(300_000));
  const decider = app.client.as({ actor: 'eve', roles: 'approver', tenant: 'platform' });
  await approve(decider, id).expect(200);
  const found = await eventually(
    () => readRequest(root, id),
    ({ execution }) => execution === 'running',
  );
  return found as ApprovalRecord & { jobId: string };
}

/** A schedule with a job that runs until it is cancelled, and a run that waits for its end. */
async function bufferingSchedule() {
  const { id } = await root
    .post<ScheduleRecord>('/api/schedules', {
      name: 'buffering',
      cronExpression: '0 3 1 1 *',
      overlapPolicy: 'bufferOne',
      jobType: 'core.sleep',
      payload: { durationMs: 300_000 },
    })
    .expect(201);
  const { jobId } = await root
    .post<{ jobId: string }>(`/api/schedules/${id}/trigger`, {})
    .expect(202);
  const { db, ids } = app.deps;
  const [run] = await db('schedule_runs').where({ schedule_id: id });
  const runId = ids.next('run');
  const dueAt = new Date(Date.now() - 86_400_000);
  await db('schedule_runs').insert({
    ...run,
    id: runId,
    kind: 'scheduled',
    outcome: 'buffered',
    due_at: dueAt,
    job_id: null,
  });
  return { id, jobId, runId };
}

let request: Awaited<ReturnType<typeof runningRequest>>;
let continued: Awaited<ReturnType<typeof runningRequest>>;
let schedule: Awaited<ReturnType<typeof bufferingSchedule>>;
beforeAll(async () => {
  request = await runningRequest();
  continued = await runningRequest();
  schedule = await bufferingSchedule();
  const backup = await backupCreator(() => root)({
    mode: 'partial',
    sections: ['jobs', 'workflows', 'schedules'],
  });
  const { db } = app.deps;
  await db('schedule_runs').where({ id: schedule.runId }).del();
  for (const jobId of [request.jobId, schedule.jobId]) {
    await root.post(`/api/jobs/${jobId}/cancel`, {}).expect(202);
    await untilEnded(jobId);
  }
  for (const { id } of [request, continued])
    for (const table of ['approval_assignees', 'approval_decisions', 'approvals'])
      await db(table)
        .where({ [table === 'approvals' ? 'id' : 'approval_id']: id })
        .del();
  await db('schedule_runs').where({ schedule_id: schedule.id }).del();
  await db('jobs').whereIn('id', [request.jobId, schedule.jobId]).del();
  await restorer(() => root)({ backupId: backup.id });
});

test('a restored request ends with its job, which had not ended', async () => {
  const error = { code: 'outcome_unknown' };
  expect(await readJob(request.jobId)).toMatchObject({ status: 'failed', error });
  const { db } = app.deps;
  expect(await hasShownTimes(db, 'jobs', 'finished_at')).toBe(true);
  expect(await hasShownTimes(db, 'approvals', 'updated_at')).toBe(true);
  expect(await readRequest(root, request.id)).toMatchObject({
    status: 'approved',
    execution: 'failed',
    error,
  });
});

test('a restored request whose job still runs goes on with it', async () => {
  expect(await readRequest(root, continued.id)).toMatchObject({ execution: 'running' });
  await root.post(`/api/jobs/${continued.jobId}/cancel`, {}).expect(202);
  await eventually(
    () => readRequest(root, continued.id),
    ({ execution, error }) => execution === 'failed' && error?.code === 'job_cancelled',
  );
});

test('a restored run that waited for the end of a job does not run', async () => {
  await app.deps.catchUp.releaseAll(AbortSignal.timeout(10_000));
  const [run] = await app.deps.db('schedule_runs').where({ id: schedule.runId });
  expect(run).toMatchObject({ outcome: 'skipped', reason: 'missed', job_id: null });
});

test.each([
  ['missed', true],
  ['paused', false],
])('past occurrences of a restored schedule are in its log as %s', async (reason, enabled) => {
  const { id } = await root
    .post<ScheduleRecord>('/api/schedules', {
      name: `past ${reason}`,
      cronExpression: '*/30 * 1 6 *',
      jobType: 'core.echo',
      payload: {},
      enabled,
    })
    .expect(201);
  const now = new Date('2026-06-01T12:10:00Z');
  const at = (time: string) => new Date(`2026-06-01T${time}:00Z`);
  await app.deps.db.transaction(async (trx) => {
    await trx('schedules')
      .where({ id })
      .update({ next_due_at: at('10:30') });
    const [run] = await trx('schedule_runs').where({ id: schedule.runId });
    // The archive has the run of an occurrence that was decided late.
    const decided = { ...run, id: app.deps.ids.at('run', at('11:00')), due_at: at('11:00') };
    await trx('schedule_runs').insert({ ...decided, schedule_id: id, reason: 'overlap' });
    await resumeSchedules(trx, [{ id, deleted: false }], now);
    const runs = await trx('schedule_runs').where({ schedule_id: id }).orderBy('due_at');
    expect(runs.map((each) => [each.due_at, each.outcome, each.reason])).toEqual([
      [at('10:30'), 'skipped', reason],
      [at('11:00'), 'skipped', 'overlap'],
      [at('11:30'), 'skipped', reason],
      [at('12:00'), 'skipped', reason],
    ]);
    const [resumed] = await trx('schedules').where({ id });
    expect(resumed).toMatchObject({ next_due_at: at('12:30'), last_run_id: runs.at(-1).id });
    await trx('schedules').where({ id }).update({ next_due_at: null });
  });
});

test('a restored schedule goes on after the time of the database, whatever the clock of its process says', async () => {
  const { id } = await root
    .post<ScheduleRecord>('/api/schedules', {
      name: 'each minute',
      cronExpression: '* * * * *',
      jobType: 'core.echo',
      payload: {},
    })
    .expect(201);
  const backup = await backupCreator(() => root)();
  const before = new Date();
  const recovered = await withClockAhead(-3_600_000, () => recover(fixture, backup));
  const { next_due_at } = await recovered.app.deps.db('schedules').where({ id }).first();
  await recovered.stop();
  expect(next_due_at.getTime()).toBeGreaterThan(before.getTime());
});
