import { PLATFORM } from '../../domain/access/scope.ts';
import { CATCH_UP_DELAY_SECONDS } from '../../domain/schedules/schedules.ts';
import { DAY_MS } from '../../domain/shared/durations.ts';
import { minIdAt } from '../../platform/ids.ts';
import type { InstallationState } from '../../platform/metrics/installationGauges.ts';
import { IS_RESTORABLE } from '../backups/backups.ts';
import { tryLockUntilCommit } from '../core/advisoryLocks.ts';
import type { Knex } from '../core/knex.ts';
import { WORKER_LIFETIME_SECONDS } from '../jobs/workers.ts';

/** Longest time that a measurement takes, in milliseconds. The last values stay if it takes longer. */
const MEASURE_TIMEOUT_MS = 3_000;

/** Rows of a kind that are counted. Each branch reads them from the index that has only such rows. */
const MAX_COUNTED = 100_000;

/** SQL: seconds since a time; 0 if it is null. */
const secondsSince = (time: string) =>
  `coalesce(greatest(extract(epoch FROM now() - ${time}), 0), 0)::double precision`;

/** SQL: seconds since a time; null if it is null. */
const ageOf = (time: string) => `extract(epoch FROM now() - ${time})::double precision`;

const DELAY = `make_interval(secs => greatest(jitter_seconds, spread_seconds) + ${CATCH_UP_DELAY_SECONDS})`;

const BACKUPS = `FROM backups WHERE status = 'completed' AND mode = 'full' AND tenant_id = '${PLATFORM}'
  AND ${IS_RESTORABLE}`;

/** SQL with one binding: the smallest id of runs of the last day. */
const MEASURE = `
  WITH unfinished AS MATERIALIZED (
    SELECT status, pool <> '' AS is_remote, created_at FROM jobs
    WHERE status IN ('queued', 'running') ORDER BY checked_at LIMIT ${MAX_COUNTED}
  ), job AS (
    SELECT count(*) FILTER (WHERE status = 'running') AS running,
      count(*) FILTER (WHERE status = 'queued' AND NOT is_remote) AS queued,
      min(created_at) FILTER (WHERE status = 'queued' AND NOT is_remote) AS oldest,
      count(*) FILTER (WHERE status = 'queued' AND is_remote) AS queued_remote,
      min(created_at) FILTER (WHERE status = 'queued' AND is_remote) AS oldest_remote
    FROM unfinished
  ), task AS (
    SELECT count(*) AS waiting, min(created_at) AS oldest
    FROM (SELECT created_at FROM outbox ORDER BY available_at LIMIT ${MAX_COUNTED}) AS o
  ), event AS (
    SELECT count(*) AS waiting, min(created_at) AS oldest FROM (
      SELECT created_at FROM events WHERE sequence IS NULL ORDER BY id LIMIT ${MAX_COUNTED}) AS e
  ), delivery AS (
    SELECT count(*) AS waiting, min(queued_at) AS oldest FROM (
      SELECT queued_at FROM deliveries WHERE status = 'pending' AND job_id IS NULL
      ORDER BY webhook_id, id LIMIT ${MAX_COUNTED}) AS d
  ), entry AS (
    SELECT count(*) AS waiting, min(at) AS oldest FROM (
      SELECT at FROM audit_entries WHERE position IS NULL ORDER BY id LIMIT ${MAX_COUNTED}) AS a
  ), late AS (
    SELECT count(*) AS schedules, min(due_at) AS oldest FROM (
      SELECT next_due_at + ${DELAY} AS due_at FROM schedules
      WHERE next_due_at <= now() AND enabled AND next_due_at + ${DELAY} <= now()
      ORDER BY next_due_at LIMIT ${MAX_COUNTED}) AS s
  )
  SELECT json_build_object(
    'jobsQueued', job.queued, 'jobsRunning', job.running,
    'oldestQueuedJobSeconds', ${secondsSince('job.oldest')},
    'remoteJobsQueued', job.queued_remote,
    'oldestQueuedRemoteJobSeconds', ${secondsSince('job.oldest_remote')},
    'outboxTasks', task.waiting, 'oldestOutboxTaskSeconds', ${secondsSince('task.oldest')},
    'eventsUnpublished', event.waiting,
    'oldestUnpublishedEventSeconds', ${secondsSince('event.oldest')},
    'deliveriesQueued', delivery.waiting,
    'oldestQueuedDeliverySeconds', ${secondsSince('delivery.oldest')},
    'auditUnsealed', entry.waiting, 'oldestUnsealedAuditSeconds', ${secondsSince('entry.oldest')},
    'schedulesLate', late.schedules, 'scheduleLatenessSeconds', ${secondsSince('late.oldest')},
    'runsMissed', (SELECT count(*) FROM (
      SELECT FROM schedule_runs WHERE reason = 'missed' AND id >= ? LIMIT ${MAX_COUNTED}) AS m),
    'workers', (SELECT count(*) FROM workers
      WHERE seen_at > now() - make_interval(secs => ${WORKER_LIFETIME_SECONDS})),
    'lastBackupAgeSeconds', (SELECT ${ageOf('max(snapshot_at)')} ${BACKUPS}),
    'lastTestedBackupAgeSeconds',
      (SELECT ${ageOf('max(snapshot_at)')} ${BACKUPS} AND restore_tested_at IS NOT NULL)
  ) AS state FROM job, task, event, delivery, entry, late`;

type Measured = Omit<InstallationState, 'ageSeconds'>;

/**
 * Measures the state of the installation and stores it for all processes, unless another process does so
 * now. Error: that of a statement that takes too long.
 */
export const measureInstallation = (db: Knex): Promise<void> =>
  db.transaction(async (trx) => {
    if (!(await tryLockUntilCommit(trx, 'installationState'))) return;
    await trx.raw(`SET LOCAL statement_timeout = ${MEASURE_TIMEOUT_MS}`);
    await trx.raw(
      `INSERT INTO installation_state (measured_at, state) SELECT now(), state FROM (${MEASURE}) AS m
       ON CONFLICT (single) DO UPDATE SET measured_at = excluded.measured_at, state = excluded.state`,
      [minIdAt('run', new Date(Date.now() - DAY_MS))],
    );
  });

/** The state of the installation as last measured; undefined if it never was. */
export async function readInstallationState(db: Knex): Promise<InstallationState | undefined> {
  const { rows } = await db.raw<{ rows: { state: Measured; ageSeconds: number }[] }>(
    `SELECT state, ${ageOf('measured_at')} AS "ageSeconds" FROM installation_state`,
  );
  return rows[0] && { ...rows[0].state, ageSeconds: rows[0].ageSeconds };
}
