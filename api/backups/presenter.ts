import {
  ENGINE_SUMMARIES,
  SECTION_INFO,
  DEFAULT_ENGINE,
  ENGINES,
  SECTIONS,
  type RestoreReport,
  type Section,
} from '../../domain/backups/backups.ts';
import type { BackupDetail } from '../../services/backups/backups.ts';
import { redactReport } from '../../services/backups/restoreReport.ts';
import type { RestoreView } from '../../services/backups/restores.ts';
import { backupWorkflowId, restoreWorkflowId } from '../../domain/dispatch/workflowIds.ts';
import type { BackupData } from '../../domain/backups/records.ts';
import type { JobError } from '../../domain/jobs/jobs.ts';
import type { JobMark } from '../../domain/jobs/records.ts';
import type { Permission } from '../../domain/access/permissions.ts';
import type { BackupRecord, BackupSummary, RestoreRecord, ValidationRecord } from './schemas.ts';
import { isoOrNull, jobReference } from '../jobs/presenter.ts';

type MayRead = (permission: Permission) => boolean;

export const backupSummary = (backup: BackupData & JobMark): BackupSummary => ({
  id: backup.id,
  tenantId: backup.tenantId,
  mode: backup.mode,
  sections: backup.sections,
  includes: backup.includes,
  engine: backup.engine,
  label: backup.label,
  retention: backup.retention,
  status: backup.status as BackupSummary['status'],
  jobId: backup.jobId,
  job: jobReference(backup.jobId, backup),
  workflowId: backupWorkflowId(backup.id),
  store: backup.store,
  archive: backup.archive,
  sizeBytes: backup.sizeBytes,
  rows: backup.rows,
  schemaVersion: backup.schemaVersion,
  appVersion: backup.appVersion,
  snapshotAt: isoOrNull(backup.snapshotAt),
  verifiedAt: isoOrNull(backup.verifiedAt),
  restoreTestedAt: isoOrNull(backup.restoreTestedAt),
  error: backup.error,
  createdBy: backup.createdBy,
  createdAt: backup.createdAt.toISOString(),
  updatedAt: backup.updatedAt.toISOString(),
  finishedAt: isoOrNull(backup.finishedAt),
  version: backup.version,
});

const EMPTY_REPORT = { valid: false, errors: [], warnings: [], preview: null, planHash: null };
const redactedReport = (report: RestoreReport | null, mayRead: MayRead) =>
  report ? redactReport(report, mayRead) : EMPTY_REPORT;

/** Why the backup cannot be restored, or null. */
function unrestorableReason(
  { status }: BackupData,
  archiveError: BackupDetail['archiveError'],
): string | null {
  if (status === 'completed')
    return archiveError && `The archive could not be read the last time: ${archiveError.message}`;
  return status === 'failed' ? 'The backup failed.' : 'The backup is still in progress.';
}

/** The report of a job that failed before it had one. */
const failureReport = (error: JobError) => ({
  ...EMPTY_REPORT,
  errors: [{ ...error, section: null, table: null, key: null }],
});

function lastValidationRecord(
  { jobId, createdAt, report, jobError }: NonNullable<BackupDetail['lastValidation']>,
  mayRead: MayRead,
) {
  const found = report
    ? redactReport(report, mayRead)
    : failureReport(jobError ?? { code: 'unexpected', message: 'The validation failed' });
  return { jobId, at: createdAt.toISOString(), ...found };
}

export const backupRecord = (
  { backup, lastValidation, archiveError }: BackupDetail,
  mayRead: MayRead,
): BackupRecord => ({
  ...backupSummary(backup),
  restorePreview: {
    restorable: backup.status === 'completed' && archiveError === null,
    reason: unrestorableReason(backup, archiveError),
    tables: (backup.manifest?.tables ?? []).map(({ section, name, rows, sha256 }) => ({
      section: section as BackupSummary['sections'][number],
      table: name,
      rows,
      sha256,
    })),
    lastValidation: lastValidation && lastValidationRecord(lastValidation, mayRead),
  },
});

const failedReport = ({ job }: RestoreView) =>
  job.error && job.status === 'failed' ? failureReport(job.error) : EMPTY_REPORT;

const runFields = ({ job, run }: RestoreView) => ({
  backupId: run.backupId,
  jobId: job.id,
  workflowId: restoreWorkflowId(run.purpose, job.id),
  status: job.status,
});

export const validationRecord = (view: RestoreView, mayRead: MayRead): ValidationRecord => ({
  ...runFields(view),
  ...(view.run.report ? redactedReport(view.run.report, mayRead) : failedReport(view)),
});

export const restoreRecord = (view: RestoreView, mayRead: MayRead): RestoreRecord => ({
  ...runFields(view),
  preRestoreBackupId: view.run.preRestoreBackupId,
  outcome: view.run.outcome,
  error: view.job.status === 'failed' ? view.job.error : null,
  ...(view.run.report ? redactedReport(view.run.report, mayRead) : failedReport(view)),
  createdAt: view.run.createdAt.toISOString(),
  finishedAt: isoOrNull(view.job.finishedAt),
});

export const sectionRecords = (tablesOf: (section: Section) => string[]) =>
  SECTIONS.map((name) => ({
    name,
    summary: SECTION_INFO[name].summary,
    tables: tablesOf(name),
    availableToTenants: SECTION_INFO[name].availableToTenants,
  }));
export const engineRecords = (available: boolean) =>
  ENGINES.map((name) => ({
    name,
    summary: ENGINE_SUMMARIES[name],
    default: name === DEFAULT_ENGINE,
    available,
  }));
