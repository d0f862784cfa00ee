import { beforeAll, expect, test } from '@jest/globals';
import type { BackupRecord } from '../../../api/backups/schemas.ts';
import type { JobRecord } from '../../../api/jobs/schemas.ts';
import type { ScheduleRecord } from '../../../api/schedules/schemas.ts';
import type { TestApp } from '../../support/app.ts';
import { approve, createRequest, sleepJob } from '../../support/approvals.ts';
import { backupCreator, restorer, restoreValidator, withBackups } from '../../support/backups.ts';
import type { TestClient } from '../../support/client.ts';
import { createIdleWebhook } from '../../support/retention.ts';

/**
 * An installation that was recovered from an older backup has continued: it knows, under other keys, some of what a
 * newer backup has.
 */
let app: TestApp;
let root: TestClient;
withBackups((started) => void ({ app, root } = started));

const platformAdmin = (actor: string) =>
  app.client.as({ actor, roles: 'platform-admin', tenant: 'platform' });
const at = (day: number) => new Date(Date.UTC(2026, 0, day, 3));

async function yearlySchedule(name: string): Promise<string> {
  const { id } = await root
    .post<ScheduleRecord>('/api/schedules', {
      name,
      cronExpression: '0 3 1 1 *',
      jobType: 'core.echo',
      payload: {},
      maxRuns: 4,
    })
    .expect(201);
  return id;
}

type Outcome = { outcome: 'fired' } | { outcome: 'buffered' } | { outcome: string; reason: string };

/** Adds a run to the log of a schedule; a job has run for one that is `fired`. */
async function addRun(scheduleId: string, day: number, outcome: Outcome): Promise<string> {
  const job =
    outcome.outcome === 'fired' &&
    (await root.post<JobRecord>('/api/jobs', { type: 'core.echo', payload: {} }).expect(201));
  const id = app.deps.ids.at('run', at(day));
  await app.deps.db('schedule_runs').insert({
    id,
    schedule_id: scheduleId,
    tenant_id: 'platform',
    kind: 'scheduled',
    due_at: at(day),
    reason: null,
    caught_up: false,
    job_id: job ? job.id : null,
    actor_id: 'root',
    decided_at: at(day),
    ...outcome,
  });
  return id;
}

const FIRED = { outcome: 'fired' } as const;
const BUFFERED = { outcome: 'buffered' } as const;
const MISSED = { outcome: 'skipped', reason: 'missed' };

const runsOf = (id: string) =>
  app.deps.db('schedule_runs').where({ schedule_id: id }).orderBy('due_at');

let schedule: string;
let backup: BackupRecord;
type ArchivedRun = { id: string; job_id: string | null };
/** The runs that the newer backup has, by day. */
let archived: [ArchivedRun, ArchivedRun, ArchivedRun, ArchivedRun];
let delivery: { id: string; event_id: string };
let decision: { id: string; approval_id: string };

/** Changes the key of a row, as if the installation had made it on its own. */
const remake = (table: string, id: string, changes: object = {}) =>
  app.deps
    .db(table)
    .where({ id })
    .update({ id: `${id.slice(0, -4)}0000`, ...changes });

async function addDelivery() {
  const webhookId = await createIdleWebhook(platformAdmin('ann'));
  const { db, ids } = app.deps;
  const event = await db('events').whereNotNull('sequence').first<{ id: string }>('id');
  const row = { id: ids.next('dlv'), event_id: event.id };
  const now = new Date();
  const times = { queued_at: now, created_at: now, updated_at: now };
  await db('deliveries').insert({
    ...row,
    ...times,
    webhook_id: webhookId,
    tenant_id: 'platform',
    status: 'failed',
  });
  await db('delivery_attempts').insert({
    delivery_id: row.id,
    number: 1,
    job_id: 'job_none',
    started_at: now,
  });
  return row;
}

async function addDecision() {
  const { id } = await createRequest(platformAdmin('ann'), {
    ...sleepJob(1),
    requiredApprovals: 2,
  });
  await approve(app.client.as({ actor: 'eve', roles: 'approver', tenant: 'platform' }), id);
  return app.deps.db('approval_decisions').where({ approval_id: id }).first('id', 'approval_id');
}

beforeAll(async () => {
  const { db } = app.deps;
  schedule = await yearlySchedule('yearly');
  for (const [index, outcome] of [FIRED, FIRED, FIRED, BUFFERED].entries())
    await addRun(schedule, index + 1, outcome);
  await db('schedules').where({ id: schedule }).update({ run_count: 3 });
  [delivery, decision] = [await addDelivery(), await addDecision()];
  const sections = ['jobs', 'workflows', 'schedules', 'webhooks'];
  backup = await backupCreator(() => root)({ mode: 'partial', sections });
  archived = (await runsOf(schedule)) as typeof archived;
  // What the older backup had, and what the installation did since: it has missed the second occurrence.
  const [, second, third, fourth] = archived;
  await remake('schedule_runs', second.id, { ...MISSED, job_id: null });
  await db('schedule_runs').where({ id: third.id }).del();
  await remake('schedule_runs', fourth.id, { ...MISSED });
  const buffered = await addRun(schedule, 5, BUFFERED);
  await db('schedules').where({ id: schedule }).update({ run_count: 1, last_run_id: buffered });
  await db('delivery_attempts').where({ delivery_id: delivery.id }).del();
  await remake('deliveries', delivery.id);
  await remake('approval_decisions', decision.id);
});

test('a newer backup can be restored: no run is lost, and none is there twice', async () => {
  const validate = restoreValidator(() => root);
  expect((await validate({ backupId: backup.id })).errors).toEqual([]);
  await restorer(() => root)({ backupId: backup.id });
  const runs = await runsOf(schedule);
  expect(runs.map(({ outcome, reason, job_id }) => [outcome, reason, job_id])).toEqual([
    ['fired', null, archived[0].job_id],
    ['fired', null, archived[1].job_id],
    ['fired', null, archived[2].job_id],
    ['skipped', 'missed', null],
    ['buffered', null, null],
  ]);
  expect(runs[2].id).toBe(archived[2].id);
  const found = await app.deps.db('schedules').where({ id: schedule }).first();
  expect(found).toMatchObject({ run_count: 3, last_run_id: runs.at(-1).id });
  expect((await validate({ backupId: backup.id })).preview.counts.created).toBe(0);
});

test('deliveries and decisions that the installation has made again remain as they are', async () => {
  const { db } = app.deps;
  const deliveries = await db('deliveries').where({ event_id: delivery.event_id }).pluck('id');
  expect(deliveries).not.toContain(delivery.id);
  expect(await db('delivery_attempts').where({ delivery_id: delivery.id })).toEqual([]);
  const decisions = await db('approval_decisions').where({ approval_id: decision.approval_id });
  expect(decisions).toHaveLength(1);
});

test('a schedule whose restored runs are all that it may make has no further one', async () => {
  const id = await yearlySchedule('four times');
  for (const day of [1, 2, 3, 4]) await addRun(id, day, FIRED);
  const { db } = app.deps;
  await db('schedules').where({ id }).update({ run_count: 4 });
  const all = await backupCreator(() => root)({ mode: 'partial', sections: ['schedules'] });
  const runs = await runsOf(id);
  await db('schedule_runs')
    .whereIn(
      'id',
      runs.slice(1).map((run) => run.id),
    )
    .del();
  await db('schedules').where({ id }).update({ run_count: 1 });
  await restorer(() => root)({ backupId: all.id });
  const found = await db('schedules').where({ id }).first();
  expect(found).toMatchObject({ run_count: 4, next_due_at: null });
});
