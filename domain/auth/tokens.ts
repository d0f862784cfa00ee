import type { Permission } from '../access/permissions.ts';
import type { ResourceScope } from '../access/scope.ts';
import type { TokenScope } from '../access/tokenScope.ts';
import type { TokenKind } from './tokenText.ts';

export const TOKEN_STATUSES = ['active', 'expired', 'disabled', 'revoked'] as const;
export type TokenStatus = (typeof TOKEN_STATUSES)[number];

/** An API token, without its secrets. */
export type TokenDetails = TokenScope & {
  id: string;
  kind: TokenKind;
  /** The user or service account that it belongs to. */
  userId: string;
  /** The tenant of its owner. */
  tenantId: string;
  name: string;
  permissions: readonly Permission[] | null;
  resourceScopes: readonly ResourceScope[] | null;
  /** The pools whose jobs a runner's token may take; it may do nothing else. */
  pools: readonly string[] | null;
  /** CIDRs of the clients that may use it. */
  allowedNetworks: readonly string[] | null;
  requestsPerMinute: number | null;
  /** The tenant of requests that name none. */
  requestTenantId: string;
  expiresAt: Date;
  rotatedAt: Date | null;
  /** Until when the secret before the last rotation is valid. */
  previousValidUntil: Date | null;
  lastUsedAt: Date | null;
  lastUsedAddress: string | null;
  disabledAt: Date | null;
  revokedAt: Date | null;
  revokedBy: string | null;
  createdBy: string;
  createdAt: Date;
  updatedAt: Date;
  version: number;
};

type Life = Pick<TokenDetails, 'expiresAt' | 'disabledAt' | 'revokedAt'>;

/** What a token is at `now`. */
export function statusOf({ expiresAt, disabledAt, revokedAt }: Life, now: Date): TokenStatus {
  if (revokedAt) return 'revoked';
  if (expiresAt <= now) return 'expired';
  return disabledAt ? 'disabled' : 'active';
}

export const DEFAULT_TOKEN_DAYS = 90;
/** A token that is not used for this long is disabled. */
export const UNUSED_DAYS = 90;
/** `token.expiring` is emitted this long before a token expires. */
export const WARNING_DAYS = 7;
/** Overlap of a rotation, at most. */
export const MAX_OVERLAP_SECONDS = 30 * 86_400;
/** Tokens of one owner that are not revoked. */
export const MAX_TOKENS = 500;
export const MAX_RESOURCE_SCOPES = 20;
export const MAX_NETWORKS = 50;
export const MAX_JOB_TYPES = 50;
export const MAX_TOKEN_POOLS = 20;
