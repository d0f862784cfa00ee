import { recordOf } from '../../../db/core/recordAudit.ts';
import type { TokenDetails } from '../../../domain/auth/tokens.ts';

/** Audit entries and events about API tokens, without anything of their secrets. */
export const tokenRecord = recordOf<TokenDetails, 'token.expiring' | 'token.unused'>({
  type: 'token',
  auditView: (token) => ({
    name: token.name,
    kind: token.kind,
    userId: token.userId,
    tenantId: token.tenantId,
    permissions: token.permissions,
    resourceScopes: token.resourceScopes,
    jobTypes: token.jobTypes,
    pools: token.pools,
    readOnly: token.readOnly,
    allowedNetworks: token.allowedNetworks,
    requestsPerMinute: token.requestsPerMinute,
    requestTenantId: token.requestTenantId,
    expiresAt: token.expiresAt,
  }),
  eventData: ({ id, kind, userId, expiresAt, lastUsedAt }) => ({
    tokenId: id,
    kind,
    userId,
    expiresAt: expiresAt.toISOString(),
    lastUsedAt: lastUsedAt?.toISOString() ?? null,
  }),
});
