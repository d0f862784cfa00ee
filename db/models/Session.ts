import { Model, snakeCaseMappers } from 'objection';

export type EndReason = 'logout' | 'reuse' | 'password_change' | 'disabled' | 'ended' | 'provider';

/** A row of `sessions`. Its tokens are in `session_tokens`, as SHA-256 only. */
export class Session extends Model {
  static override tableName = 'sessions';
  static override columnNameMappers = snakeCaseMappers();

  declare id: string;
  declare userId: string;
  /** Where new records of this session stand. */
  declare tenantId: string;
  declare address: string | null;
  declare userAgent: string | null;
  declare createdAt: Date;
  declare refreshedAt: Date;
  declare idleExpiresAt: Date;
  declare absoluteExpiresAt: Date;
  declare endedAt: Date | null;
  declare endReason: EndReason | null;
}
