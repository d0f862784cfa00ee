import type { LoadPurpose, RestoreReport } from '../../domain/backups/backups.ts';
import type { JobError } from '../../domain/jobs/jobs.ts';
import type { Knex } from '../core/knex.ts';
import { limitPauses } from '../core/lostClients.ts';
import { notifySql } from '../core/unitOfWork.ts';
import { Backup, RestoreRun } from '../models/Backup.ts';

type RestoreRunWithError = RestoreRun & { jobError: JobError | null };

/** The last run of these purposes that has reported on a backup or has ended, or null. */
export async function findLastRun(
  db: Knex,
  backupId: string,
  purposes: readonly LoadPurpose[],
): Promise<RestoreRunWithError | null> {
  const run = await RestoreRun.query(db)
    .alias('r')
    .join('jobs AS j', 'j.id', 'r.job_id')
    .select('r.*', 'j.error AS jobError')
    .where({ 'r.backup_id': backupId })
    .whereIn('r.purpose', [...purposes])
    .whereRaw(`(r.report IS NOT NULL OR j.status IN ('succeeded', 'failed'))`)
    .orderBy('r.job_id', 'desc')
    .first();
  return (run as RestoreRunWithError | undefined) ?? null;
}

/** The id of a running job that loads a backup's archive, or made it before a restore; or null. */
export async function findJobUsingArchive(db: Knex, backupId: string): Promise<string | null> {
  const run = await RestoreRun.query(db)
    .where((either) =>
      either.where({ backup_id: backupId }).orWhere({ pre_restore_backup_id: backupId }),
    )
    .whereIn('job_id', (jobs) =>
      jobs.from('jobs').select('id').whereIn('status', ['queued', 'running']),
    )
    .first();
  return run?.jobId ?? null;
}

/**
 * A backup whose archive a job will load: it is not deleted before the transaction ends, nor afterwards
 * while the job has a run. Undefined for one that is deleted.
 */
export const lockToLoad = async (trx: Knex, id: string): Promise<Backup | undefined> =>
  Backup.query(trx).findById(id).whereNotIn('status', ['deleting', 'deleted']).forShare();

/** Stores the report of a run and notifies `topic`. */
export async function storeReport(
  db: Knex,
  { jobId, report, planHash }: { jobId: string; report: RestoreReport; planHash: string },
  topic: string,
): Promise<void> {
  const notify = notifySql([topic]);
  await db.raw(
    `WITH run AS (UPDATE restore_runs SET report = ?, plan_hash = ? WHERE job_id = ? RETURNING 1)
     SELECT ${notify.sql} FROM run`,
    [JSON.stringify(report), planHash, jobId, ...notify.bindings],
  );
}

/** Limits how long each further statement of a transaction waits for a lock. */
export const limitLocks = (trx: Knex, timeoutMs: number) =>
  trx.raw(`SET LOCAL lock_timeout = ${Math.trunc(timeoutMs)}`);

/** Removes the limit on how long statements of a transaction may take. */
export const removeTimeouts = (trx: Knex) =>
  trx.raw(`SET LOCAL statement_timeout = 0; ${limitPauses()}`);
