import { Model, snakeCaseMappers } from 'objection';
import type {
  BackupEngine,
  BackupMode,
  BackupStatus,
  LoadPurpose,
  RestoreReport,
  Section,
} from '../../domain/backups/backups.ts';
import type { BackupData, RestoreRunData } from '../../domain/backups/records.ts';
import type { RetentionPolicy } from '../../domain/backups/retention.ts';
import type { JobError } from '../../domain/jobs/jobs.ts';
import type { ArchiveManifest } from '../../platform/archive/format.ts';
import type { PendingUpload, StoreKind } from '../../platform/stores/store.ts';

/** A row of `backups`: an archive, from its request until its deletion. */
export class Backup extends Model implements BackupData {
  static override tableName = 'backups';
  static override jsonAttributes = [
    'sections',
    'includes',
    'retention',
    'pending',
    'manifest',
    'error',
    'archiveError',
  ];
  static override columnNameMappers = snakeCaseMappers();

  declare id: string;
  declare tenantId: string;
  declare mode: BackupMode;
  /**
   * The requested sections, and those that were included because the requested ones refer to them.
   */
  declare sections: Section[];
  declare includes: Section[];
  declare engine: BackupEngine;
  declare label: string;
  declare retention: RetentionPolicy;
  declare status: BackupStatus;
  declare jobId: string | null;
  declare store: StoreKind;
  /** The name of the archive in the store. */
  declare archive: string;
  /**
   * The attempt that writes the archive, and its upload once that is complete but not finalized.
   */
  declare pending: { attempt: string; upload: PendingUpload | null } | null;
  declare sizeBytes: number | null;
  declare rows: number | null;
  declare manifest: ArchiveManifest | null;
  declare schemaVersion: string | null;
  declare appVersion: string | null;
  /** The instant of the snapshot. */
  declare snapshotAt: Date | null;
  /** When the archive was last read completely, and when it was last loaded in a test restore. */
  declare verifiedAt: Date | null;
  declare restoreTestedAt: Date | null;
  declare error: JobError | null;
  /** Of the last load that found out whether the archive can be restored; null if it can. */
  declare archiveError: JobError | null;
  declare createdBy: string;
  declare createdAt: Date;
  declare updatedAt: Date;
  declare finishedAt: Date | null;
  declare deletedAt: Date | null;
  declare checkAt: Date;
  declare version: number;
}

/** A row of `restore_runs`: the report and the outcome of a job that loads an archive. */
export class RestoreRun extends Model implements RestoreRunData {
  static override tableName = 'restore_runs';
  static override idColumn = 'job_id';
  static override jsonAttributes = ['report', 'outcome'];
  static override columnNameMappers = snakeCaseMappers();

  declare jobId: string;
  declare backupId: string;
  declare tenantId: string;
  declare purpose: LoadPurpose;
  declare report: RestoreReport | null;
  declare planHash: string | null;
  declare preRestoreBackupId: string | null;
  /** Written in the same transaction as the restore, so that a repeated attempt applies it once. */
  declare outcome: Record<string, unknown> | null;
  declare doneAt: Date | null;
  declare createdAt: Date;
}
