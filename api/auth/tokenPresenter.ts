import { statusOf, type TokenDetails } from '../../domain/auth/tokens.ts';
import type { ServiceAccountDetails } from '../../domain/auth/users.ts';
import type { NewToken } from '../../services/auth/apiTokens/tokens.ts';
import type { ServiceAccountRecord, TokenRecord, TokenWithSecret } from './tokenSchemas.ts';

const iso = (time: Date | null): string | null => time?.toISOString() ?? null;

export const tokenView = (token: TokenDetails): TokenRecord => ({
  id: token.id,
  kind: token.kind,
  userId: token.userId,
  tenantId: token.tenantId,
  name: token.name,
  status: statusOf(token, new Date()),
  permissions: token.permissions && [...token.permissions],
  resourceScopes:
    token.resourceScopes?.map(({ tenantId, siteId = null, deviceId = null }) => ({
      tenantId,
      siteId,
      deviceId,
    })) ?? null,
  jobTypes: token.jobTypes && [...token.jobTypes],
  pools: token.pools && [...token.pools],
  readOnly: token.readOnly,
  allowedNetworks: token.allowedNetworks && [...token.allowedNetworks],
  requestsPerMinute: token.requestsPerMinute,
  requestTenantId: token.requestTenantId,
  expiresAt: token.expiresAt.toISOString(),
  rotatedAt: iso(token.rotatedAt),
  previousValidUntil: iso(token.previousValidUntil),
  lastUsedAt: iso(token.lastUsedAt),
  lastUsedAddress: token.lastUsedAddress,
  disabledAt: iso(token.disabledAt),
  revokedAt: iso(token.revokedAt),
  revokedBy: token.revokedBy,
  createdBy: token.createdBy,
  createdAt: token.createdAt.toISOString(),
  updatedAt: token.updatedAt.toISOString(),
  version: token.version,
});

/** A new token with its text, or without it in a repeated response. */
export const secretView = ({
  token,
  secret,
}: Omit<NewToken, 'secret'> & { secret: string | null }): TokenWithSecret => ({
  ...tokenView(token),
  token: secret,
});

export const serviceAccountView = (account: ServiceAccountDetails): ServiceAccountRecord => ({
  id: account.id,
  name: account.username,
  displayName: account.displayName,
  ownerId: account.ownerId,
  tenantId: account.tenantId,
  enabled: account.enabled,
  createdAt: account.createdAt.toISOString(),
  updatedAt: account.updatedAt.toISOString(),
  version: account.version,
});
