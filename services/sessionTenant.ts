import { findReachedTenants, principalsOf } from '../db/access/access.ts';
import type { Knex } from '../db/core/knex.ts';
import type { User } from '../db/models/User.ts';
import { invalidField } from '../domain/shared/errors.ts';
import { PLATFORM } from '../domain/access/scope.ts';

/**
 * Where new records of a user's session stand: the tenant asked for, when it is the user's own or anything is held
 * there; without one, the tenant of all grants, when it is one, else the user's own. Error: `invalid_request` at
 * `/tenantId`.
 */
export async function sessionTenant(
  db: Knex,
  user: User,
  wanted: string | undefined,
): Promise<string> {
  const reached = await findReachedTenants(
    db,
    principalsOf(user.id, user.providerId, user.externalGroups),
  );
  if (wanted !== undefined) {
    if (wanted === user.tenantId || reached.includes(wanted) || reached.includes(PLATFORM))
      return wanted;
    throw invalidField(
      'body',
      '/tenantId',
      'not_held',
      'is not a tenant where this user holds anything',
    );
  }
  const [only, ...others] = reached;
  return only !== undefined && others.length === 0 ? only : user.tenantId;
}
