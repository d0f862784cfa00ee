import {
  ENGINE_SUMMARIES,
  SECTION_INFO,
  DEFAULT_ENGINE,
  ENGINES,
  SECTIONS,
  type RestoreReport,
  type Section,
} from '../../domain/backups/backups.ts';
import type { Caller } from '../../domain/shared/caller.ts';
import type { Access } from '../../services/access/access.ts';
import type { BackupDetail } from '../../services/backups/backups.ts';
import { redactReport, type MayRead } from '../../services/backups/restoreReport.ts';
import type { ArchiveTarget } from '../../services/backups/archives.ts';
import type { RestoreRunDetail, RestoreRunView } from '../../services/backups/restoreHistory.ts';
import type { RestoreView } from '../../services/backups/restores.ts';
import { backupWorkflowId, restoreWorkflowId } from '../../domain/dispatch/workflowIds.ts';
import type { BackupData, BackupView } from '../../domain/backups/records.ts';
import type { JobError } from '../../domain/jobs/jobs.ts';
import type { BackupRecord, BackupSummary, RestoreRecord, ValidationRecord } from './schemas.ts';
import type { RestoreRunRecord, RestoreRunSummary } from './runSchemas.ts';
import { isoOrNull, jobReference } from '../jobs/presenter.ts';

/** Where a caller may see records: at the tenant of a backup, or at another one. */
export const mayReadAt =
  ({ holds }: Pick<Access, 'holds'>, { rights }: Caller, ownTenantId: string): MayRead =>
  (permission, tenantId = ownTenantId) =>
    holds(rights, permission, { tenantId });

export const backupSummary = (backup: BackupView): BackupSummary => ({
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
  archiveError: backup.archiveError,
  scheduleId: backup.scheduleId,
  keptAs: backup.keptAs,
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
  { status, archiveError }: BackupData,
  storeProblem: string | null,
): string | null {
  if (status === 'completed' && storeProblem !== null) return storeProblem;
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
  { backup, lastValidation, preRestoreOf, storeProblem }: BackupDetail,
  mayRead: MayRead,
): BackupRecord => {
  const reason = unrestorableReason(backup, storeProblem);
  return {
    ...backupSummary(backup),
    preRestoreOf,
    restorePreview: {
      restorable: reason === null,
      reason,
      tables: (backup.manifest?.tables ?? []).map(({ section, name, rows, sha256 }) => ({
        section: section as BackupSummary['sections'][number],
        table: name,
        rows,
        sha256,
      })),
      lastValidation: lastValidation && lastValidationRecord(lastValidation, mayRead),
    },
  };
};

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

export const runSummary = (run: RestoreRunView): RestoreRunSummary => ({
  jobId: run.id,
  backupId: run.backupId,
  tenantId: run.tenantId,
  purpose: run.purpose,
  status: run.status,
  progress: run.progress,
  sections: run.sections,
  valid: run.valid,
  counts: run.counts,
  planHash: run.planHash,
  preRestoreBackupId: run.preRestoreBackupId,
  error: run.error && { code: run.error.code, message: run.error.message },
  createdBy: run.createdBy,
  createdAt: run.createdAt.toISOString(),
  finishedAt: isoOrNull(run.finishedAt),
});

export const runRecord = (run: RestoreRunDetail, mayRead: MayRead): RestoreRunRecord => {
  const { errors, warnings, preview } = redactedReport(run.report, mayRead);
  return { ...runSummary(run), errors, warnings, preview, outcome: run.outcome };
};

type SectionFacts = {
  tablesOf: (section: Section) => string[];
  references: Readonly<Record<Section, Section[]>>;
};

export const sectionRecords = ({ tablesOf, references }: SectionFacts) =>
  SECTIONS.map((name) => {
    const { summary, availableToTenants, readPermission, restorePermissions } = SECTION_INFO[name];
    return {
      name,
      summary,
      tables: tablesOf(name),
      availableToTenants,
      refersTo: references[name],
      readPermission,
      restorePermissions: [...restorePermissions],
    };
  });
/** Where new archives are stored, and what is missing for that. */
export const storageRecord = ({ store, masterKey, problems }: ArchiveTarget) => ({
  store,
  masterKey,
  problems: problems.map(({ code, message }) => ({ code, message })),
});

export const engineRecords = (available: boolean) =>
  ENGINES.map((name) => ({
    name,
    summary: ENGINE_SUMMARIES[name],
    default: name === DEFAULT_ENGINE,
    available,
  }));
