import type { Knex } from '../../db/core/knex.ts';
import { User } from '../../db/models/User.ts';
import { normalizeName } from '../../domain/approvals/names.ts';
import { holdsAnythingAt, narrowToRoles } from '../../domain/access/scope.ts';
import type { Caller } from '../../domain/shared/caller.ts';
import { AppError } from '../../domain/shared/errors.ts';

/** What a request with a token says about its caller in identity headers. */
export type IdentityClaims = {
  actorId?: string;
  /** The request uses the rights of these roles only. */
  roleIds?: readonly string[];
  /** The tenant of the request. */
  tenantId?: string;
};

export const identityMismatch = (detail: string): AppError =>
  new AppError('identity_mismatch', detail);

/** True when a name is the id, the user name, the e-mail address or the external id of the user. */
async function isNameOf(db: Knex, userId: string, name: string): Promise<boolean> {
  if (name === userId) return true;
  const user = await User.query(db).findById(userId).select('username', 'email', 'external_id');
  const names = [user?.username, user?.email, user?.externalId];
  const given = normalizeName(name);
  return names.some((each) => each != null && normalizeName(each) === given);
}

/**
 * Applies the identity headers of a request with a token: they choose the tenant of the request and
 * narrow its rights, and never add any. So they are accepted from every address. Error:
 * `identity_mismatch` for a header that is not true of the caller.
 */
export async function applyClaims(
  db: Knex,
  caller: Caller,
  { actorId, roleIds, tenantId = caller.tenantId }: IdentityClaims,
): Promise<Caller> {
  if (actorId !== undefined && !(await isNameOf(db, caller.actorId, actorId)))
    throw identityMismatch('X-Service-Actor-Id does not name the user of the token.');
  // A caller with a one-time password has no rights yet.
  if (caller.session?.mustChangePassword) return caller;
  if (tenantId !== caller.tenantId && !holdsAnythingAt(caller.rights, tenantId))
    throw identityMismatch(
      `X-Service-Tenant-Id names ${tenantId}, where the user of the token holds no role.`,
    );
  if (!roleIds) return { ...caller, tenantId };
  const held = new Set(caller.rights.grants.map(({ role }) => role.id));
  const missing = roleIds.find((id) => !held.has(id));
  if (missing !== undefined)
    throw identityMismatch(
      `X-Service-Role-Ids names ${missing}, which the user of the token does not hold.`,
    );
  return { ...caller, tenantId, roleIds, rights: narrowToRoles(caller.rights, roleIds) };
}
