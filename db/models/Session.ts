import { Model, snakeCaseMappers } from 'objection';

/** Why a session ended; null in the record while it is live. */
export type SessionEndReason =
  | 'logout'
  | 'token_reuse'
  | 'password_change'
  | 'disabled'
  | 'revoked'
  | 'provider_disabled'
  | 'too_many_sessions';

/** A row of `sessions`. `session_tokens` holds the SHA-256 hashes of its tokens. */
export class Session extends Model {
  static override tableName = 'sessions';
  static override columnNameMappers = snakeCaseMappers();

  declare id: string;
  declare userId: string;
  /** The tenant that new records of this session belong to. */
  declare tenantId: string;
  declare address: string | null;
  declare userAgent: string | null;
  declare createdAt: Date;
  declare refreshedAt: Date;
  declare idleExpiresAt: Date;
  declare absoluteExpiresAt: Date;
  declare endedAt: Date | null;
  declare endReason: SessionEndReason | null;
}
