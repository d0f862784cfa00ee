import { Model, snakeCaseMappers } from 'objection';
import type { LegalHoldData } from '../../domain/retention/holds.ts';

/** A row of `legal_holds`. */
export class LegalHold extends Model implements LegalHoldData {
  static override tableName = 'legal_holds';
  static override columnNameMappers = snakeCaseMappers();

  declare id: string;
  declare tenantId: string;
  declare level: 'platform' | 'tenant';
  declare subjectType: string | null;
  declare subjectId: string | null;
  declare reason: string;
  declare startsAt: Date | null;
  declare endsAt: Date | null;
  declare createdBy: string;
  declare createdAt: Date;
  declare releasedBy: string | null;
  declare releasedAt: Date | null;
  declare releaseReason: string | null;
  declare updatedAt: Date;
  declare version: number;
}
