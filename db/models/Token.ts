import { Model, snakeCaseMappers } from 'objection';
import type { Permission } from '../../domain/access/permissions.ts';
import type { ResourceScope } from '../../domain/access/scope.ts';
import type { TokenKind } from '../../domain/auth/tokenText.ts';
import type { TokenDetails } from '../../domain/auth/tokens.ts';

/** A row of `tokens`. */
export class Token extends Model implements TokenDetails {
  static override tableName = 'tokens';
  static override jsonAttributes = ['resourceScopes'];
  static override columnNameMappers = snakeCaseMappers();

  declare id: string;
  declare kind: TokenKind;
  declare userId: string;
  declare tenantId: string;
  declare name: string;
  /** SHA-256 of the secret. */
  declare hash: Buffer;
  /** SHA-256 of the secret before the last rotation. */
  declare previousHash: Buffer | null;
  declare previousValidUntil: Date | null;
  declare permissions: Permission[] | null;
  declare resourceScopes: ResourceScope[] | null;
  declare jobTypes: string[] | null;
  /** The pools whose jobs a runner's token may take. */
  declare pools: string[] | null;
  declare readOnly: boolean;
  declare allowedNetworks: string[] | null;
  declare requestsPerMinute: number | null;
  declare requestTenantId: string;
  declare expiresAt: Date;
  declare rotatedAt: Date | null;
  declare lastUsedAt: Date | null;
  declare lastUsedAddress: string | null;
  /** When `token.expiring` was emitted. */
  declare warnedAt: Date | null;
  /** When it was disabled because nobody had used it. */
  declare disabledAt: Date | null;
  declare revokedAt: Date | null;
  declare revokedBy: string | null;
  declare createdBy: string;
  declare createdAt: Date;
  declare updatedAt: Date;
  declare version: number;
}
