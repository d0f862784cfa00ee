import { createCommit } from '../db/core/commit.ts';
import { keysetPage } from '../db/core/keyset.ts';
import { openDatabase, type Knex } from '../db/core/knex.ts';
import { listEvents } from '../db/events/eventLog.ts';
import { findWithLogs, JOB_SUMMARY_COLUMNS } from '../db/jobs/jobs.ts';
import { Job } from '../db/models/Job.ts';
import { ScheduleRun } from '../db/models/ScheduleRun.ts';
import { withJobs } from '../db/schedules/runs.ts';
import { forEachPeriod, PERIODS } from '../domain/retention/retention.ts';
import { createIds } from '../platform/ids.ts';
import { createLog } from '../platform/log.ts';
import { createLogMonths } from '../services/retention/logMonths.ts';
import { createPurge } from '../services/retention/purge.ts';
import { startBenchEnvironment } from './fixture.ts';
import { ms, perSecond, quantile, type BenchResult } from './report.ts';

/**
 * A year of history of one tenant: a schedule due every minute with 19 log lines a job, and 5 million
 * events. `BENCH_RETENTION_SHARE` is the part of it that is generated, 1 for all.
 */
const SHARE = Number(process.env.BENCH_RETENTION_SHARE ?? '0.05');
const JOBS = Math.round(525_600 * SHARE);
const LINES_OF_A_JOB = 19;
const EVENTS = Math.round(5_000_000 * SHARE);
const DELIVERIES = Math.round(200_000 * SHARE);
const TENANT = 'year';
const READS = 50;

/** SQL: an id of a time, and of the number `n` of its row. */
const idAt = (prefix: string) =>
  `'${prefix}_' || substr(first_job_id(at), 5, 10) || lpad(n::text, 16, '0')`;

/** SQL: `rows` rows with their number `n` and their time `at`, spread over the year. */
const spread = (rows: number) =>
  `(SELECT n, now() - interval '365 days' + n * interval '365 days' / ${rows} AS at
    FROM generate_series(1, ${rows}) AS n) AS t`;

const YEAR: readonly string[] = [
  `INSERT INTO tenants (id, name) VALUES ('${TENANT}', 'Year')`,
  `ALTER TABLE job_logs DETACH PARTITION job_logs_earlier`,
  `SELECT create_job_log_month(month_after(now(), -m)) FROM generate_series(0, 12) AS m`,
  `INSERT INTO schedules (id, tenant_id, name, description, cron_expression, timezone, job_type, payload,
     retry_policy, overlap_policy, catchup_window_seconds, jitter_seconds, enabled, owner, checked_at,
     created_by, created_at, updated_at)
   VALUES ('sch_year', '${TENANT}', 'minute', '', '* * * * *', 'UTC', 'core.echo', '{}', '{}', 'skip', 60, 0,
     true, '{}', now(), 'bench', now(), now())`,
  `INSERT INTO webhooks (id, tenant_id, endpoint_url, description, event_types, enabled, retry_policy, secret,
     enabled_at, created_by, created_at, updated_at)
   VALUES ('whk_year', '${TENANT}', 'https://example.net/', '', '{*}', true, '{}', '', now(), 'bench', now(), now())`,
  `INSERT INTO jobs (id, type, tenant_id, status, payload, retry_policy, result, attempts, log_count, run_id,
     created_by, authority, source_kind, source_id, created_at, updated_at, started_at, finished_at, checked_at)
   SELECT ${idAt('job')}, 'core.echo', '${TENANT}', 'succeeded', '{"hello": "every minute"}',
     '{"maxAttempts": 3, "initialIntervalSeconds": 1, "backoffCoefficient": 2, "maxIntervalSeconds": 60, "nonRetryableCodes": []}',
     '{"hello": "every minute"}', 1, ${LINES_OF_A_JOB}, gen_random_uuid()::text, 'bench',
     '{"actorId": "bench", "grants": [{"roleId": "operator", "tenantId": "${TENANT}"}]}', 'schedule', 'sch_year', at, at, at, at, at
   FROM ${spread(JOBS)}`,
  `INSERT INTO job_logs (job_id, line, attempt, level, message, at)
   SELECT id, line, 1, 'info', 'Step ' || line || ' of the work has succeeded', created_at
   FROM jobs, generate_series(1, ${LINES_OF_A_JOB}) AS line WHERE tenant_id = '${TENANT}'`,
  `INSERT INTO schedule_runs (id, schedule_id, tenant_id, kind, due_at, outcome, caught_up, job_id, actor_id, decided_at)
   SELECT 'run' || substr(id, 4), 'sch_year', tenant_id, 'scheduled', created_at, 'fired', false, id, 'bench', created_at
   FROM jobs WHERE tenant_id = '${TENANT}'`,
  `INSERT INTO events (id, sequence, type, tenant_id, subject_type, subject_id, actor_id, data, created_at)
   SELECT ${idAt('evt')}, n, 'job.succeeded', '${TENANT}', 'job', 'job_01jd0cmxk5e5v8kyzwq0q8s3rt', 'bench',
     '{"jobId": "job_01jd0cmxk5e5v8kyzwq0q8s3rt", "type": "core.echo", "status": "succeeded"}', at
   FROM ${spread(EVENTS)}`,
  `UPDATE event_head SET sequence = ${EVENTS}`,
  `INSERT INTO deliveries (id, tenant_id, webhook_id, event_id, status, queued_at, created_at, updated_at)
   SELECT 'dlv' || substr(id, 4), tenant_id, 'whk_year', id, 'succeeded', created_at, created_at, created_at
   FROM events WHERE sequence % ${Math.round(EVENTS / DELIVERIES)} = 0`,
  `INSERT INTO delivery_attempts (delivery_id, number, job_id, started_at, finished_at, duration_ms, http_status,
     request_headers, response_body, response_truncated)
   SELECT id, 1, 'job_01jd0cmxk5e5v8kyzwq0q8s3rt', created_at, created_at, 12, 204,
     '{"content-type": "application/json", "webhook-id": "evt_01jd0cmxk5e5v8kyzwq0q8s3rt"}', '', false
   FROM deliveries`,
  `INSERT INTO audit_entries (id, tenant_id, actor_id, via, action, outcome, subject_type, subject_id, after,
     request_id, at, position, hash)
   SELECT ${idAt('aud')}, '${TENANT}', 'bench', 'session', 'job.create', 'done', 'job',
     'job_01jd0cmxk5e5v8kyzwq0q8s3rt', '{"type": "core.echo", "status": "queued", "createdBy": "bench"}',
     'req_01jd0cmxk5e5v8kyzwq0q8s3rt', at, n, sha256(n::text::bytea)
   FROM ${spread(JOBS)}`,
];

/** The tables of one record, and the table whose rows are counted. */
const RECORDS: readonly (readonly [string, string, readonly string[]])[] = [
  ['job', 'jobs', ['jobs']],
  ['log line', 'job_logs', []],
  ['event', 'events', ['events']],
  ['delivery with an attempt', 'deliveries', ['deliveries', 'delivery_attempts']],
  ['schedule run', 'schedule_runs', ['schedule_runs']],
  ['audit entry', 'audit_entries', ['audit_entries']],
];

/** Bytes of a record with its indexes. */
async function measureBytes(db: Knex): Promise<BenchResult[]> {
  const results: BenchResult[] = [];
  for (const [record, table, tables] of RECORDS) {
    const size =
      tables.length === 0
        ? `(SELECT sum(pg_total_relation_size(relid)) FROM pg_partition_tree('${table}'))`
        : tables.map((name) => `pg_total_relation_size('${name}')`).join(' + ');
    const { rows } = await db.raw<{ rows: { bytes: number }[] }>(
      `SELECT (${size})::double precision / count(*) AS bytes FROM ${table}`,
    );
    const value = `${(rows[0]?.bytes ?? 0).toFixed(0)} bytes`;
    results.push({ ...NO_TARGET, measure: `${record} with its indexes`, value });
  }
  return results;
}

const NO_TARGET = { reference: '', ratio: '', target: '', met: true };

/** Medians of reads in milliseconds, by name. */
async function measureReads(db: Knex) {
  const scope = { kind: 'everywhere' } as const;
  const page = { limit: 50, after: undefined };
  const [newest] = (await keysetPage(Job.query(db).where({ tenant_id: TENANT }), page)).items;
  const reads: Readonly<Record<string, () => Promise<unknown>>> = {
    'list of jobs': () =>
      keysetPage(
        Job.query(db)
          .select([...JOB_SUMMARY_COLUMNS])
          .where({ tenant_id: TENANT }),
        page,
      ),
    'a job with its log': () => findWithLogs(db, newest?.id ?? '', scope, 200),
    'list of events': () =>
      listEvents(
        db,
        scope,
        {
          where: [
            { field: 'tenantId', kind: 'text', nullable: false, operator: 'in', values: [TENANT] },
          ],
        },
        { limit: 50, order: 'newest', before: undefined },
      ),
    'list of runs': async () => {
      const runs = await keysetPage(ScheduleRun.query(db).where({ tenant_id: TENANT }), page);
      return withJobs(db, runs.items);
    },
  };
  const medians = new Map<string, number>();
  for (const [name, read] of Object.entries(reads)) {
    const durations: number[] = [];
    for (let n = 0; n < READS; n++) {
      const startedAt = performance.now();
      await read();
      durations.push(performance.now() - startedAt);
    }
    medians.set(name, quantile(durations, 0.5));
  }
  return medians;
}

/** Purges the year. Returns the number of rows, and how long it took in seconds. */
async function purgeYear(db: Knex) {
  const ids = createIds();
  const jobId = ids.next('job');
  const commit = createCommit({
    db,
    ids,
    dispatcher: { canDispatchInline: () => false, onCommitted: () => undefined },
    dispatchGraceMs: 1_000,
    onChanged: () => undefined,
    onEventsCommitted: () => undefined,
    onSlotAwaited: () => undefined,
  });
  const config = { retention: forEachPeriod((period) => PERIODS[period].fallbackDays) };
  const purge = createPurge({ db, commit, log: createLog('silent', false), config });
  const logMonths = createLogMonths({ db, commit, log: createLog('silent', false), config });
  await db.raw(
    `INSERT INTO jobs (id, type, tenant_id, status, payload, retry_policy, attempts, run_id, created_by,
       authority, source_kind, created_at, updated_at, checked_at)
     VALUES (?, 'retention.purge', 'platform', 'running', '{}', '{}', 1, 'run', 'system', '{}', 'system', now(), now(), now())`,
    [jobId],
  );
  const run = { jobId, runId: 'run', attempt: 1, signal: new AbortController().signal };
  const startedAt = performance.now();
  const months = await logMonths.drop(jobId, new Date());
  const dropSeconds = (performance.now() - startedAt) / 1_000;
  let rows = 0;
  await purge.run(run, new Date(), Infinity, (_kind, more) => void (rows += more));
  return {
    months: months.length,
    dropSeconds,
    rows,
    seconds: (performance.now() - startedAt) / 1_000 - dropSeconds,
  };
}

/** What a year of history costs, and how fast it is purged. */
export async function bench(): Promise<BenchResult[]> {
  const environment = await startBenchEnvironment();
  const db = openDatabase({
    url: environment.databaseUrl,
    poolSize: 4,
    statementTimeoutMs: 0,
    log: createLog('silent', false),
  });
  try {
    for (const statement of YEAR) await db.raw(statement);
    await db.raw('ANALYZE');
    const bytes = await measureBytes(db);
    const before = await measureReads(db);
    const purged = await purgeYear(db);
    await db.raw('ANALYZE');
    const after = await measureReads(db);
    const reads = [...after].map(([name, value]): BenchResult => {
      const year = before.get(name) ?? 0;
      return {
        ...NO_TARGET,
        measure: `${name}, purged against a year of history`,
        value: ms(value),
        reference: ms(year),
        ratio: (value / year).toFixed(2),
      };
    });
    return [
      ...bytes,
      ...reads,
      {
        ...NO_TARGET,
        measure: `months of log lines dropped: ${purged.months}`,
        value: `${purged.dropSeconds.toFixed(1)} s`,
      },
      {
        ...NO_TARGET,
        measure: `rows purged: ${purged.rows}`,
        value: perSecond(purged.rows / purged.seconds),
      },
    ];
  } finally {
    await db.destroy();
    await environment.stop();
  }
}
