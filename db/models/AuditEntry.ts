import { Model, snakeCaseMappers } from 'objection';
import type { AuditOutcome } from '../core/unitOfWork.ts';

/** A row of `audit_entries`. `position` and `hash` are its place in its tenant's chain, once it is sealed. */
export class AuditEntry extends Model {
  static override tableName = 'audit_entries';
  static override jsonAttributes = ['before', 'after'];
  static override columnNameMappers = snakeCaseMappers();

  declare id: string;
  declare tenantId: string;
  declare actorId: string;
  /** Through what the actor came: gateway, session, anonymous, system. */
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
