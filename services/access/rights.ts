import { createHash } from 'node:crypto';
import { LRUCache } from 'lru-cache';
import {
  findGrants,
  findRoles,
  findUserAuthState,
  principalsOf,
  type UserAuthState,
} from '../../db/access/access.ts';
import type { Knex } from '../../db/core/knex.ts';
import { isSessionLive } from '../../db/auth/sessions.ts';
import type { Authority, Caller } from '../../domain/shared/caller.ts';
import { BUILT_IN_ROLES, type Role } from '../../domain/access/roles.ts';
import { grantAtTenant, narrowToRoles, NO_RIGHTS, type Rights } from '../../domain/access/scope.ts';

export type UserRights = ReturnType<typeof createRights>;

/** Capacity of the cache of users' rights, in grants. Long group names count as further grants. */
const MAX_CACHED_GRANTS = 200_000;
const CHARACTERS_PER_GRANT = 50;

const MAX_CACHED_HEADERS = 1_000;

const charactersOf = ({ principals = [] }: Rights): number =>
  principals.reduce((sum, principal) => sum + principal.length, 0);

/** Reads the rights of callers. Rights are cached until a grant or a role changes. */
export function createRights({ db }: { db: Knex }) {
  const userCache = new LRUCache<string, { version: number; rights: Rights }>({
    maxSize: MAX_CACHED_GRANTS,
    sizeCalculation: ({ rights }) =>
      rights.grants.length + 1 + Math.ceil(charactersOf(rights) / CHARACTERS_PER_GRANT),
  });
  const headerCache = new LRUCache<string, Rights>({ max: MAX_CACHED_HEADERS });

  const rightsAtTenant = (
    roleIds: readonly string[],
    tenantId: string,
    roles: ReadonlyMap<string, Role>,
  ): Rights => ({
    grants: roleIds.flatMap((id) => {
      const role = roles.get(id);
      return role ? [grantAtTenant(role, tenantId)] : [];
    }),
  });

  async function forUser(
    userId: string,
    { enabled, providerId, externalGroups, version }: UserAuthState,
  ): Promise<Rights> {
    if (!enabled) return NO_RIGHTS;
    const principals = principalsOf(userId, providerId, externalGroups);
    const key = createHash('sha256').update(JSON.stringify(principals)).digest('base64url');
    const cached = userCache.get(key);
    if (cached?.version === version) return cached.rights;
    const rights = { grants: await findGrants(db, principals), principals };
    userCache.set(key, { version, rights });
    return rights;
  }

  /** Rights of a user by id: none if the user is disabled or does not exist. */
  async function forUserId(userId: string): Promise<Rights> {
    const authState = await findUserAuthState(db, userId);
    return authState ? forUser(userId, authState) : NO_RIGHTS;
  }

  return {
    /** Rights of a user: by assignments, and by mappings of their groups as of the last login. */
    forUser,

    /** Rights of the roles in a gateway's headers, at its tenant. Unknown role ids are ignored. */
    async forRoles(roleIds: readonly string[], tenantId: string): Promise<Rights> {
      if (roleIds.some((id) => !BUILT_IN_ROLES.has(id)))
        return rightsAtTenant(roleIds, tenantId, await findRoles(db, roleIds));
      const key = JSON.stringify([tenantId, ...roleIds]);
      const cached = headerCache.get(key);
      if (cached) return cached;
      const rights = rightsAtTenant(roleIds, tenantId, BUILT_IN_ROLES);
      headerCache.set(key, rights);
      return rights;
    },

    /**
     * Current rights of a caller, read in a transaction without the cache: rights read at the start
     * of the request may be outdated after waiting for a lock. None if the session has ended.
     */
    async reload(trx: Knex, caller: Caller): Promise<Rights> {
      if (caller.session) {
        const live = await isSessionLive(trx, caller.session.id);
        const authState = await findUserAuthState(trx, caller.actorId);
        if (!live || !authState?.enabled) return NO_RIGHTS;
        const principals = principalsOf(
          caller.actorId,
          authState.providerId,
          authState.externalGroups,
        );
        const current = { grants: await findGrants(trx, principals), principals };
        return caller.roleIds ? narrowToRoles(current, caller.roleIds) : current;
      }
      const roles = await findRoles(
        trx,
        caller.rights.grants.map(({ role }) => role.id),
      );
      return {
        grants: caller.rights.grants.flatMap((grant) => {
          const role = roles.get(grant.role.id);
          return role ? [{ ...grant, role }] : [];
        }),
      };
    },

    /** Current rights of the authority that a job runs for. */
    async forAuthority(authority: Authority): Promise<Rights> {
      if ('userId' in authority) {
        const { userId, roleIds } = authority;
        const current = await forUserId(userId);
        return roleIds ? narrowToRoles(current, roleIds) : current;
      }
      const roles = await findRoles(
        db,
        authority.grants.map(({ roleId }) => roleId),
      );
      return {
        grants: authority.grants.flatMap(
          ({ roleId, tenantId }) => rightsAtTenant([roleId], tenantId, roles).grants,
        ),
      };
    },
  };
}

/** What is stored of a caller for work that continues without the request. */
export const authorityOf = ({ kind, actorId, rights, roleIds }: Caller): Authority =>
  kind === 'session'
    ? { actorId, userId: actorId, ...(roleIds && { roleIds }) }
    : {
        actorId,
        grants: rights.grants.map(({ role, targetId }) => ({
          roleId: role.id,
          tenantId: targetId,
        })),
      };
