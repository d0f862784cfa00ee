import { ABOUT_ENGINES, ABOUT_SECTIONS, DEFAULT_ENGINE, ENGINES, SECTIONS, type RestoreReport } from '../../domain/backups.ts';
import type { BackupWithLook } from '../../services/backups/backups.ts';
import { shownTo } from '../../services/backups/restoreReport.ts';
import { backupWorkflowOf, restoreWorkflowOf, tablesIn } from '../../services/backups/names.ts';
import type { RestoreView } from '../../services/backups/restores.ts';
import type { Permission } from '../../domain/permissions.ts';
import type { BackupRecord, BackupSummary, RestoreRecord, ValidationRecord } from '../schemas/backups.ts';
import { time } from './jobs.ts';

type Backup = BackupWithLook['backup'];
type MayRead = (permission: Permission) => boolean;

export const backupSummary = (backup: Backup): BackupSummary => ({
  id: backup.id, tenantId: backup.tenantId, mode: backup.mode, sections: backup.sections, includes: backup.includes, engine: backup.engine, label: backup.label,
  keep: backup.keep, status: backup.status as BackupSummary['status'], jobId: backup.jobId, workflowId: backupWorkflowOf(backup.id), store: backup.store, archive: backup.archive,
  sizeBytes: backup.sizeBytes, rows: backup.rows, schemaVersion: backup.schemaVersion, appVersion: backup.appVersion, snapshotAt: time(backup.snapshotAt),
  verifiedAt: time(backup.verifiedAt), provenAt: time(backup.provenAt), error: backup.error, createdBy: backup.createdBy, createdAt: backup.createdAt.toISOString(),
  updatedAt: backup.updatedAt.toISOString(), finishedAt: time(backup.finishedAt), version: backup.version,
});

const NOTHING = { valid: false, errors: [], warnings: [], preview: null, planHash: null };
const shown = (report: RestoreReport | null, mayRead: MayRead) => (report ? shownTo(report, mayRead) : NOTHING);

/** Why there is nothing to restore from, or null. */
function reasonOf({ status }: Backup): string | null {
  if (status === 'completed') return null;
  return status === 'failed' ? 'The backup failed.' : 'The backup is not finished.';
}

export const backupRecord = ({ backup, look }: BackupWithLook, mayRead: MayRead): BackupRecord => ({
  ...backupSummary(backup),
  restorePreview: {
    restorable: backup.status === 'completed', reason: reasonOf(backup),
    tables: (backup.manifest?.tables ?? []).map(({ section, name, rows, sha256 }) => ({ section: section as BackupSummary['sections'][number], table: name, rows, sha256 })),
    lastValidation: look?.report ? { jobId: look.jobId, at: look.createdAt.toISOString(), ...shownTo(look.report, mayRead) } : null,
  },
});

/** What a failed job says instead of a report. */
const failed = ({ job }: RestoreView) => (job.error && job.status === 'failed' ? { ...NOTHING, errors: [{ ...job.error, section: null, table: null, key: null }] } : NOTHING);

const named = ({ job, run }: RestoreView) => ({ backupId: run.backupId, jobId: job.id, workflowId: restoreWorkflowOf(run.purpose, job.id), status: job.status });

export const validationRecord = (view: RestoreView, mayRead: MayRead): ValidationRecord => ({ ...named(view), ...(view.run.report ? shown(view.run.report, mayRead) : failed(view)) });

export const restoreRecord = (view: RestoreView, mayRead: MayRead): RestoreRecord => ({
  ...named(view), safetyBackupId: view.run.safetyBackupId, outcome: view.run.outcome, error: view.job.status === 'failed' ? view.job.error : null,
  ...(view.run.report ? shown(view.run.report, mayRead) : failed(view)),
  createdAt: view.run.createdAt.toISOString(), finishedAt: time(view.job.finishedAt),
});

export const sectionRecords = () => SECTIONS.map((name) => ({ name, summary: ABOUT_SECTIONS[name].summary, tables: tablesIn(name), ofTenants: ABOUT_SECTIONS[name].ofTenants }));
export const engineRecords = (available: boolean) => ENGINES.map((name) => ({ name, summary: ABOUT_ENGINES[name], default: name === DEFAULT_ENGINE, available }));
