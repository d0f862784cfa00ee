import { Model, raw, snakeCaseMappers, type QueryBuilder } from 'objection';
import type { LoadPurpose, RestoreReport, Section } from '../../domain/backups/backups.ts';
import type { RestoreRunSummaryData } from '../../domain/backups/records.ts';
import type { JobError, JobProgress, JobStatus } from '../../domain/jobs/jobs.ts';
import type { Knex } from '../core/knex.ts';
import { RestoreRun } from '../models/Backup.ts';

/** A row of `restore_runs` with its job, without the report. */
class RestoreRunSummary extends Model implements RestoreRunSummaryData {
  static override tableName = 'restore_runs';
  static override columnNameMappers = snakeCaseMappers();

  declare id: string;
  declare backupId: string;
  declare tenantId: string;
  declare purpose: LoadPurpose;
  declare status: JobStatus;
  declare progress: JobProgress | null;
  declare requestedSections: Section[] | null;
  declare valid: boolean | null;
  declare counts: RestoreReport['preview']['counts'] | null;
  declare planHash: string | null;
  declare preRestoreBackupId: string | null;
  declare error: JobError | null;
  declare createdBy: string;
  declare createdAt: Date;
  declare finishedAt: Date | null;
}

/** The jobs that have loaded the archive of a backup. A report may be large and is not read. */
export function queryRestoreRuns(db: Knex, backupId: string): QueryBuilder<RestoreRunSummary> {
  const runs = db('restore_runs AS r')
    .join('jobs AS j', 'j.id', 'r.job_id')
    .where('r.backup_id', backupId)
    .select(
      'r.job_id AS id',
      'r.backup_id',
      'r.tenant_id',
      'r.purpose',
      'r.plan_hash',
      'r.pre_restore_backup_id',
      'r.created_at',
      'j.status',
      'j.progress',
      'j.error',
      'j.created_by',
      'j.finished_at',
      db.raw(`j.payload -> 'sections' AS requested_sections`),
      db.raw(`(r.report ->> 'valid')::boolean AS valid`),
      db.raw(`r.report -> 'preview' -> 'counts' AS counts`),
    );
  return RestoreRunSummary.query(db)
    .from(raw('? AS restore_runs', [runs]))
    .select('*');
}

/** The restore before which a backup was made; null for other backups. */
export async function findRestoreAfter(
  db: Knex,
  backupId: string,
): Promise<{ jobId: string; backupId: string } | null> {
  const run = await RestoreRun.query(db)
    .findOne({ pre_restore_backup_id: backupId })
    .select('job_id', 'backup_id');
  return run ? { jobId: run.jobId, backupId: run.backupId } : null;
}
