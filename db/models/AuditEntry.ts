import { Model, snakeCaseMappers } from 'objection';
import type { AuditOutcome } from '../core/unitOfWork.ts';

/**
 * A row of `audit_entries`. `position` and `hash` link it into the hash chain of its tenant; they
 * are null until the audit sealer has sealed it.
 */
export class AuditEntry extends Model {
  static override tableName = 'audit_entries';
  static override jsonAttributes = ['before', 'after'];
  static largeColumns = ['before', 'after'];
  static override columnNameMappers = snakeCaseMappers();

  declare id: string;
  declare tenantId: string;
  declare actorId: string;
  /** How the actor was authenticated: gateway, session, anonymous or system. */
  declare via: string;
  declare action: string;
  declare outcome: AuditOutcome;
  declare subjectType: string;
  declare subjectId: string;
  declare before: object | null;
  declare after: object | null;
  declare requestId: string;
  declare address: string | null;
  declare at: Date;
  declare position: number | null;
  declare hash: Buffer | null;
}
