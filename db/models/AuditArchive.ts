import { Model, snakeCaseMappers } from 'objection';
import type { AuditArchiveData } from '../../domain/audit/archives.ts';

/** A row of `audit_archives`. */
export class AuditArchive extends Model implements AuditArchiveData {
  static override tableName = 'audit_archives';
  static override columnNameMappers = snakeCaseMappers();

  declare id: string;
  declare tenantId: string;
  declare jobId: string;
  declare status: AuditArchiveData['status'];
  declare firstPosition: number;
  declare position: number;
  declare previousHash: Buffer;
  declare hash: Buffer;
  declare firstAt: Date;
  declare lastAt: Date;
  /** The largest id of the entries. */
  declare lastId: string;
  declare store: AuditArchiveData['store'];
  declare archive: string;
  /** The number of the attempt that writes the archive; its name has it. */
  declare attempts: number;
  declare sizeBytes: number | null;
  declare checkpointAt: Date | null;
  declare createdAt: Date;
  declare updatedAt: Date;
}
