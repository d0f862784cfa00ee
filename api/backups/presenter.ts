import {
  ABOUT_ENGINES,
  ABOUT_SECTIONS,
  DEFAULT_ENGINE,
  ENGINES,
  SECTIONS,
  type RestoreReport,
} from '../../domain/backups.ts';
import type { BackupWithLook } from '../../services/backups/backups.ts';
import { shownTo } from '../../services/backups/restoreReport.ts';
import { backupWorkflowOf, restoreWorkflowOf, tablesIn } from '../../services/backups/names.ts';
import type { RestoreView } from '../../services/backups/restores.ts';
import type { JobError } from '../../domain/jobs/jobs.ts';
import type { Permission } from '../../domain/access/permissions.ts';
import type {
  BackupRecord,
  BackupSummary,
  RestoreRecord,
  ValidationRecord,
} from './schemas.ts';
import { time } from '../jobs/presenter.ts';

type Backup = BackupWithLook['backup'];
type MayRead = (permission: Permission) => boolean;

export const backupSummary = (backup: Backup): BackupSummary => ({
  id: backup.id,
  tenantId: backup.tenantId,
  mode: backup.mode,
  sections: backup.sections,
  includes: backup.includes,
  engine: backup.engine,
  label: backup.label,
  keep: backup.keep,
  status: backup.status as BackupSummary['status'],
  jobId: backup.jobId,
  workflowId: backupWorkflowOf(backup.id),
  store: backup.store,
  archive: backup.archive,
  sizeBytes: backup.sizeBytes,
  rows: backup.rows,
  schemaVersion: backup.schemaVersion,
  appVersion: backup.appVersion,
  snapshotAt: time(backup.snapshotAt),
  verifiedAt: time(backup.verifiedAt),
  provenAt: time(backup.provenAt),
  error: backup.error,
  createdBy: backup.createdBy,
  createdAt: backup.createdAt.toISOString(),
  updatedAt: backup.updatedAt.toISOString(),
  finishedAt: time(backup.finishedAt),
  version: backup.version,
});

const NOTHING = { valid: false, errors: [], warnings: [], preview: null, planHash: null };
const shown = (report: RestoreReport | null, mayRead: MayRead) =>
  report ? shownTo(report, mayRead) : NOTHING;

/** Why there is nothing to restore from, or null. */
function reasonOf({ status }: Backup, unreadable: BackupWithLook['unreadable']): string | null {
  if (status === 'completed') return unreadable && `When it was last read: ${unreadable.message}`;
  return status === 'failed' ? 'The backup failed.' : 'The backup is not finished.';
}

/** What a failed job says instead of a report. */
const failure = (error: JobError) => ({
  ...NOTHING,
  errors: [{ ...error, section: null, table: null, key: null }],
});

function lookOf(
  { jobId, createdAt, report, jobError }: NonNullable<BackupWithLook['look']>,
  mayRead: MayRead,
) {
  const found = report
    ? shownTo(report, mayRead)
    : failure(jobError ?? { code: 'unexpected', message: 'The look at the archive failed' });
  return { jobId, at: createdAt.toISOString(), ...found };
}

export const backupRecord = (
  { backup, look, unreadable }: BackupWithLook,
  mayRead: MayRead,
): BackupRecord => ({
  ...backupSummary(backup),
  restorePreview: {
    restorable: backup.status === 'completed' && unreadable === null,
    reason: reasonOf(backup, unreadable),
    tables: (backup.manifest?.tables ?? []).map(({ section, name, rows, sha256 }) => ({
      section: section as BackupSummary['sections'][number],
      table: name,
      rows,
      sha256,
    })),
    lastValidation: look && lookOf(look, mayRead),
  },
});

const failed = ({ job }: RestoreView) =>
  job.error && job.status === 'failed' ? failure(job.error) : NOTHING;

const named = ({ job, run }: RestoreView) => ({
  backupId: run.backupId,
  jobId: job.id,
  workflowId: restoreWorkflowOf(run.purpose, job.id),
  status: job.status,
});

export const validationRecord = (view: RestoreView, mayRead: MayRead): ValidationRecord => ({
  ...named(view),
  ...(view.run.report ? shown(view.run.report, mayRead) : failed(view)),
});

export const restoreRecord = (view: RestoreView, mayRead: MayRead): RestoreRecord => ({
  ...named(view),
  safetyBackupId: view.run.safetyBackupId,
  outcome: view.run.outcome,
  error: view.job.status === 'failed' ? view.job.error : null,
  ...(view.run.report ? shown(view.run.report, mayRead) : failed(view)),
  createdAt: view.run.createdAt.toISOString(),
  finishedAt: time(view.job.finishedAt),
});

export const sectionRecords = () =>
  SECTIONS.map((name) => ({
    name,
    summary: ABOUT_SECTIONS[name].summary,
    tables: tablesIn(name),
    ofTenants: ABOUT_SECTIONS[name].ofTenants,
  }));
export const engineRecords = (available: boolean) =>
  ENGINES.map((name) => ({
    name,
    summary: ABOUT_ENGINES[name],
    default: name === DEFAULT_ENGINE,
    available,
  }));
