import { Model, snakeCaseMappers } from 'objection';
import type {
  BackupEngine,
  BackupMode,
  BackupStatus,
  Keep,
  LoadPurpose,
  RestoreReport,
  Section,
} from '../../domain/backups.ts';
import type { JobError } from '../../domain/jobs/jobs.ts';
import type { ArchiveManifest } from '../../platform/archive/format.ts';
import type { Pending, StoreKind } from '../../platform/stores/store.ts';

/** A row of `backups`: an archive, from the request for it until it is deleted. */
export class Backup extends Model {
  static override tableName = 'backups';
  static override jsonAttributes = ['sections', 'includes', 'keep', 'pending', 'manifest', 'error'];
  static override columnNameMappers = snakeCaseMappers();

  declare id: string;
  declare tenantId: string;
  declare mode: BackupMode;
  /** What was asked for, and what came along because it is referred to. */
  declare sections: Section[];
  declare includes: Section[];
  declare engine: BackupEngine;
  declare label: string;
  declare keep: Keep;
  declare status: BackupStatus;
  declare jobId: string | null;
  declare store: StoreKind;
  /** Its name in the store. */
  declare archive: string;
  /** What is written and not yet an archive. */
  declare pending: { attempt: string; upload: Pending | null } | null;
  declare sizeBytes: number | null;
  declare rows: number | null;
  declare manifest: ArchiveManifest | null;
  declare schemaVersion: string | null;
  declare appVersion: string | null;
  /** The moment whose records it holds. */
  declare snapshotAt: Date | null;
  /** When it was last read from end to end, and when it was last loaded and compared. */
  declare verifiedAt: Date | null;
  declare provenAt: Date | null;
  declare error: JobError | null;
  declare createdBy: string;
  declare createdAt: Date;
  declare updatedAt: Date;
  declare finishedAt: Date | null;
  declare deletedAt: Date | null;
  declare checkAt: Date;
  declare version: number;
}

/** A row of `restore_runs`: an archive that a job loads, and what was found. */
export class RestoreRun extends Model {
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
  declare safetyBackupId: string | null;
  /** What was done, written with it: an attempt that is repeated does it once. */
  declare outcome: Record<string, unknown> | null;
  declare doneAt: Date | null;
  declare createdAt: Date;
}
