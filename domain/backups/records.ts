import type { JobError, JobProgress, JobStatus } from '../jobs/jobs.ts';
import type { JobMark } from '../jobs/records.ts';
import type {
  BackupEngine,
  BackupMode,
  BackupStatus,
  LoadPurpose,
  RestoreReport,
  Section,
} from './backups.ts';
import type { KeptAs, RetentionPolicy } from './retention.ts';

/** A table in an archive, with the number and the SHA-256 hash of its rows. */
type ArchivedRows = { section: string; name: string; rows: number; sha256: string };

/** A backup as it is stored: an archive, from its request until its deletion. */
export type BackupData = {
  id: string;
  tenantId: string;
  mode: BackupMode;
  /** The requested sections. */
  sections: Section[];
  /** Sections that were included because the requested ones refer to them. */
  includes: Section[];
  engine: BackupEngine;
  label: string;
  retention: RetentionPolicy;
  status: BackupStatus;
  jobId: string | null;
  store: 'folder' | 's3';
  /** The name of the archive in the store. */
  archive: string;
  sizeBytes: number | null;
  rows: number | null;
  manifest: { tables: ArchivedRows[] } | null;
  schemaVersion: string | null;
  appVersion: string | null;
  /** The instant of the snapshot. */
  snapshotAt: Date | null;
  /** When the archive was last read completely. */
  verifiedAt: Date | null;
  /** When the last test restore succeeded. */
  restoreTestedAt: Date | null;
  error: JobError | null;
  /** Why the archive cannot be restored, as the last load found; null if none did. */
  archiveError: JobError | null;
  createdBy: string;
  createdAt: Date;
  updatedAt: Date;
  finishedAt: Date | null;
  version: number;
};

/** A backup with what other records say about it. */
export type BackupView = BackupData &
  JobMark & {
    /** The schedule whose job made it; null for others, and after its job is purged. */
    scheduleId: string | null;
    /** What keeps it; empty if its series deletes it next, null if it is not completed. */
    keptAs: KeptAs[] | null;
  };

/** The report and the outcome of a job that loads an archive. */
export type RestoreRunData = {
  jobId: string;
  backupId: string;
  tenantId: string;
  purpose: LoadPurpose;
  report: RestoreReport | null;
  planHash: string | null;
  preRestoreBackupId: string | null;
  outcome: Record<string, unknown> | null;
  createdAt: Date;
};

/** The job that loads an archive. */
export type RestoreJobData = {
  id: string;
  status: JobStatus;
  payload: object;
  error: JobError | null;
  finishedAt: Date | null;
};

/** A job that loads an archive, without its report. */
export type RestoreRunSummaryData = {
  /** The id of the job. */
  id: string;
  backupId: string;
  tenantId: string;
  purpose: LoadPurpose;
  status: JobStatus;
  progress: JobProgress | null;
  /** The sections that the request named; null for all of the backup. */
  requestedSections: Section[] | null;
  valid: boolean | null;
  counts: RestoreReport['preview']['counts'] | null;
  planHash: string | null;
  preRestoreBackupId: string | null;
  error: JobError | null;
  createdBy: string;
  createdAt: Date;
  finishedAt: Date | null;
};
