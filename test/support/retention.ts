import { expect } from '@jest/globals';
import { DAY_MS } from '../../domain/shared/durations.ts';
import type { ScheduleRecord } from '../../api/schedules/schemas.ts';
import type { WebhookRecord } from '../../api/webhooks/schemas.ts';
import type { Knex } from '../../db/core/knex.ts';
import { createIds } from '../../platform/ids.ts';
import type { TestApp } from './app.ts';
import type { TestClient } from './client.ts';

const ids = createIds();

/** The time a number of days ago. */
export const daysAgo = (days: number): Date => new Date(Date.now() - days * DAY_MS);

type OldJob = {
  tenant: string;
  days: number;
  type?: string;
  status?: 'succeeded' | 'failed' | 'running';
  lines?: number;
  count?: number;
};

/** Inserts jobs that were created days ago, with lines in their logs. Returns their ids. */
export async function seedJobs(
  db: Knex,
  { tenant, days, type = 'core.echo', status = 'succeeded', lines = 2, count = 1 }: OldJob,
): Promise<string[]> {
  const at = daysAgo(days);
  const rows = Array.from({ length: count }, (_, n) => ({
    id: ids.at('job', new Date(at.getTime() + n)),
    type,
    tenant_id: tenant,
    status,
    payload: JSON.stringify({ of: 'the job' }),
    result: JSON.stringify({ done: true }),
    retry_policy: JSON.stringify({
      maxAttempts: 1,
      initialIntervalSeconds: 1,
      backoffCoefficient: 2,
      maxIntervalSeconds: 60,
      nonRetryableCodes: [],
    }),
    error:
      status === 'failed'
        ? JSON.stringify({ code: 'http_status', message: 'no', response: { body: 'secret' } })
        : null,
    attempts: 1,
    log_count: lines,
    run_id: 'run',
    created_by: 'alice',
    authority: JSON.stringify({ actorId: 'alice', grants: [] }),
    source_kind: 'api',
    created_at: at,
    updated_at: at,
    started_at: at,
    finished_at: status === 'running' ? null : at,
    checked_at: new Date(),
  }));
  await db.batchInsert('jobs', rows, 500);
  await db.raw(
    `INSERT INTO job_logs (job_id, line, attempt, level, message, at)
     SELECT id, line, 1, 'info', 'line ' || line, now()
     FROM unnest(?::text[]) AS id, generate_series(1, ?::int) AS line`,
    [rows.map(({ id }) => id), lines],
  );
  return rows.map(({ id }) => id);
}

/** Inserts published events that were created days ago, after all others. Returns their ids. */
export async function seedEvents(
  db: Knex,
  { tenant, days, count = 1 }: { tenant: string; days: number; count?: number },
): Promise<string[]> {
  const at = daysAgo(days);
  const [head] = (
    await db.raw<{ rows: { sequence: number }[] }>(
      'UPDATE event_head SET sequence = sequence + ? RETURNING sequence',
      [count],
    )
  ).rows;
  const rows = Array.from({ length: count }, (_, n) => ({
    id: ids.at('evt', new Date(at.getTime() + n)),
    sequence: (head?.sequence ?? 0) - count + n + 1,
    type: 'webhook.deleted',
    tenant_id: tenant,
    subject_type: 'webhook',
    subject_id: 'whk_old',
    actor_id: 'alice',
    data: JSON.stringify({
      webhookId: 'whk_old',
      endpointOrigin: 'https://example.net',
      eventTypes: ['job.failed'],
      enabled: false,
    }),
    created_at: at,
  }));
  await db.batchInsert('events', rows, 500);
  return rows.map(({ id }) => id);
}

/** Creates a webhook that is sent nothing. Returns its id. */
export const createIdleWebhook = async (client: TestClient): Promise<string> =>
  (
    await client
      .post<WebhookRecord>('/api/webhooks', {
        endpointUrl: 'https://example.net/',
        eventTypes: ['job.failed'],
        enabled: false,
      })
      .expect(201)
  ).id;

/** Inserts a delivery of an event with one attempt. Returns its id. */
export async function seedDelivery(
  db: Knex,
  delivery: { tenant: string; days: number; webhookId: string; eventId: string; status: string },
): Promise<string> {
  const at = daysAgo(delivery.days);
  const id = ids.at('dlv', at);
  await db('deliveries').insert({
    id,
    tenant_id: delivery.tenant,
    webhook_id: delivery.webhookId,
    event_id: delivery.eventId,
    status: delivery.status,
    queued_at: at,
    created_at: at,
    updated_at: at,
  });
  await db('delivery_attempts').insert({
    delivery_id: id,
    number: 1,
    job_id: 'job_old',
    started_at: at,
  });
  return id;
}

/** Creates a schedule that is disabled. Returns its id. */
export const createIdleSchedule = async (client: TestClient, name = 'nightly'): Promise<string> =>
  (
    await client
      .post<ScheduleRecord>('/api/schedules', {
        name,
        cronExpression: '* * * * *',
        jobType: 'core.echo',
        enabled: false,
      })
      .expect(201)
  ).id;

/** Inserts an import of a job that was created days ago, with rows that were created. Returns its id. */
export async function seedImport(
  db: Knex,
  { tenant, days, jobId, rows = 1 }: { tenant: string; days: number; jobId: string; rows?: number },
): Promise<string> {
  const at = daysAgo(days);
  const id = ids.at('imp', at);
  await db('imports').insert({
    id,
    tenant_id: tenant,
    job_id: jobId,
    dry_run: false,
    rows,
    done: rows,
    authority: '{}',
    created_by: 'alice',
    created_at: at,
  });
  await db.raw(
    `INSERT INTO import_rows (import_id, line, mutation, outcome)
     SELECT ?, line, '{}', 'created' FROM generate_series(1, ?::int) AS line`,
    [id, rows],
  );
  return id;
}

/** Inserts runs of a schedule, on the minute; the first was due days ago. Returns their ids. */
export async function seedRuns(
  db: Knex,
  run: { tenant: string; days: number; scheduleId: string; count: number },
): Promise<string[]> {
  const first = Math.floor(daysAgo(run.days).getTime() / 60_000) * 60_000;
  const rows = Array.from({ length: run.count }, (_, n) => {
    const due = new Date(first + n * 60_000);
    return {
      id: ids.at('run', due),
      schedule_id: run.scheduleId,
      tenant_id: run.tenant,
      kind: 'scheduled',
      due_at: due,
      outcome: 'skipped',
      reason: 'overlap',
      caught_up: false,
      actor_id: 'alice',
      decided_at: due,
    };
  });
  await db.batchInsert('schedule_runs', rows, 500);
  return rows.map(({ id }) => id);
}

/** Whether a statement waits for a lock. */
export async function waitsForLock(db: Knex): Promise<boolean> {
  const { rows } = await db.raw<{ rows: object[] }>(
    `SELECT FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database()`,
  );
  return rows.length > 0;
}

/** The attempt of a purge, with the job that it belongs to. */
export async function startPurgeRun(db: Knex): Promise<{
  jobId: string;
  runId: string;
  attempt: number;
  signal: AbortSignal;
}> {
  const [jobId = ''] = await seedJobs(db, {
    tenant: 'platform',
    days: 0,
    type: 'retention.purge',
    status: 'running',
    lines: 0,
  });
  return { jobId, runId: 'run', attempt: 1, signal: new AbortController().signal };
}

/** Purges everything that is due. Returns the number of deleted rows by kind. */
export async function purgeDue({ deps: { db, purge } }: TestApp): Promise<Record<string, number>> {
  const rows: Record<string, number> = {};
  const count = (kind: string, more: number) => {
    if (more > 0) rows[kind] = (rows[kind] ?? 0) + more;
  };
  const run = await startPurgeRun(db);
  expect(await purge.run(run, new Date(), Infinity, count)).toBe(true);
  await db('jobs').where({ id: run.jobId }).delete();
  return rows;
}
