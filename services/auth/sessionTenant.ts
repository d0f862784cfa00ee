import { findReachableTenants, principalsOf } from '../../db/access/access.ts';
import type { Knex } from '../../db/core/knex.ts';
import type { User } from '../../db/models/User.ts';
import { invalidField } from '../../domain/shared/errors.ts';
import { PLATFORM } from '../../domain/access/scope.ts';

/**
 * The tenant that new records of a session belong to. A requested tenant must be the user's own or
 * one in which the user has a grant. By default it is the tenant of all the user's grants if they
 * have only one, otherwise the user's own. Error: `invalid_request` at `/tenantId`.
 */
export async function resolveSessionTenant(
  db: Knex,
  user: User,
  requestedTenantId: string | undefined,
): Promise<string> {
  const reachableTenants = await findReachableTenants(
    db,
    principalsOf(user.id, user.providerId, user.externalGroups),
  );
  if (requestedTenantId !== undefined) {
    if (
      requestedTenantId === user.tenantId ||
      reachableTenants.includes(requestedTenantId) ||
      reachableTenants.includes(PLATFORM)
    )
      return requestedTenantId;
    throw invalidField(
      'body',
      '/tenantId',
      'tenant_not_accessible',
      'is not a tenant in which this user has a grant',
    );
  }
  const [only, ...others] = reachableTenants;
  return only !== undefined && others.length === 0 ? only : user.tenantId;
}
