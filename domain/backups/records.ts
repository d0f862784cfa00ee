import type { JobError, JobStatus } from '../jobs/jobs.ts';
import type {
  BackupEngine,
  BackupMode,
  BackupStatus,
  LoadPurpose,
  RestoreReport,
  Section,
} from './backups.ts';
import type { RetentionPolicy } from './retention.ts';

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
  createdBy: string;
  createdAt: Date;
  updatedAt: Date;
  finishedAt: Date | null;
  version: number;
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
