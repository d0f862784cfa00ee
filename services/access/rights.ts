import { hash } from 'node:crypto';
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
import { findTokenState, type TokenState } from '../../db/auth/tokens.ts';
import { hasAccount, type Authority, type Caller } from '../../domain/shared/caller.ts';
import { coversJobType } from '../../domain/access/jobTypePatterns.ts';
import type { Permission } from '../../domain/access/permissions.ts';
import { BUILT_IN_ROLES, type Role } from '../../domain/access/roles.ts';
import { grantAtTenant, narrowToRoles, NO_RIGHTS, type Rights } from '../../domain/access/scope.ts';
import { cutPermissions, cutRights } from '../../domain/access/tokenScope.ts';
import { NO_PROVIDER } from '../../domain/auth/providers.ts';
import { statusOf } from '../../domain/auth/tokens.ts';

export type UserRights = ReturnType<typeof createRights>;

/** Capacity of the cache of users' rights, in grants. Long group names count as further grants. */
const MAX_CACHED_GRANTS = 200_000;
const CHARACTERS_PER_GRANT = 50;

const MAX_CACHED_HEADERS = 1_000;

/** Service accounts never decide approvals, whatever roles they have. */
const NOT_FOR_SERVICES = new Set<Permission>(['workflow:approve']);

/** False for permissions that no role confers on the accounts of a provider. */
export const mayEverHold = (providerId: string, permission: Permission): boolean =>
  providerId !== NO_PROVIDER || !NOT_FOR_SERVICES.has(permission);

const ofService = (rights: Rights): Rights => ({
  ...rights,
  grants: cutPermissions(rights.grants, (permission) => mayEverHold(NO_PROVIDER, permission)),
});

/**
 * A role as it is now, without permissions and job types that it did not have: a token may have left
 * them out.
 */
const withoutAdded = (now: Role, before: Role): Role => ({
  ...now,
  permissions: new Set([...now.permissions].filter((each) => before.permissions.has(each))),
  jobTypes: now.jobTypes.filter((each) =>
    before.jobTypes.some((pattern) => coversJobType(pattern, each)),
  ),
});

const charactersOf = ({ principals = [] }: Rights): number =>
  principals.reduce((sum, principal) => sum + principal.length, 0);

/** Reads the rights of callers. Rights are cached until a grant or a role changes. */
export function createRights({ db }: { db: Knex }) {
  const userCache = new LRUCache<string, { version: number; rights: Rights }>({
    maxSize: MAX_CACHED_GRANTS,
    sizeCalculation: ({ rights }) =>
      rights.grants.length + 1 + Math.ceil(charactersOf(rights) / CHARACTERS_PER_GRANT),
  });
  const tokenCache = new LRUCache<string, { of: Rights; scope: string; rights: Rights }>({
    maxSize: MAX_CACHED_GRANTS,
    sizeCalculation: ({ rights }) => rights.grants.length + 1,
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
    const key = hash('sha256', JSON.stringify(principals), 'base64url');
    const cached = userCache.get(key);
    if (cached?.version === version) return cached.rights;
    const rights = await readRights(db, principals, providerId);
    userCache.set(key, { version, rights });
    return rights;
  }

  async function readRights(
    executor: Knex,
    principals: string[],
    providerId: string,
  ): Promise<Rights> {
    const rights = { grants: await findGrants(executor, principals), principals };
    return providerId === NO_PROVIDER ? ofService(rights) : rights;
  }

  /** Rights of a token, whatever its status. Its requests share an object, like those of a user. */
  async function forToken(token: TokenState): Promise<Rights> {
    if (token.kind === 'runner') return NO_RIGHTS;
    const of = await forUser(token.userId, token);
    const { permissions, resourceScopes, jobTypes, readOnly } = token;
    const scope = JSON.stringify([permissions, resourceScopes, jobTypes, readOnly]);
    const cached = tokenCache.get(token.id);
    if (cached?.of === of && cached.scope === scope) return cached.rights;
    const rights = cutRights(of, token);
    tokenCache.set(token.id, { of, scope, rights });
    return rights;
  }

  /** Rights of what a token has asked for: they end when it is revoked, not when it expires. */
  async function forTokenId(tokenId: string): Promise<Rights> {
    const token = await findTokenState(db, tokenId);
    return token?.revokedAt === null ? forToken(token) : NO_RIGHTS;
  }

  /** Current rights of a caller with an account, in a transaction; none if session or token ended. */
  async function reloadAccount(trx: Knex, { actorId, session, token }: Caller): Promise<Rights> {
    const authState = await findUserAuthState(trx, actorId);
    if (!authState?.enabled) return NO_RIGHTS;
    if (session && !(await isSessionLive(trx, session.id))) return NO_RIGHTS;
    const principals = principalsOf(actorId, authState.providerId, authState.externalGroups);
    const current = await readRights(trx, principals, authState.providerId);
    if (!token) return current;
    const state = await findTokenState(trx, token.id);
    return state && state.kind !== 'runner' && statusOf(state, new Date()) === 'active'
      ? cutRights(current, state)
      : NO_RIGHTS;
  }

  /** Rights of a user by id: none if the user is disabled or does not exist. */
  async function forUserId(userId: string): Promise<Rights> {
    const authState = await findUserAuthState(db, userId);
    return authState ? forUser(userId, authState) : NO_RIGHTS;
  }

  return {
    /** Forgets the rights of all users: after a failover, a version may be that of other grants. */
    forget: (): void => userCache.clear(),

    /** Rights of a user: by assignments, and by mappings of their groups as of the last login. */
    forUser,

    forToken,

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
     * of the request may be outdated after waiting for a lock. None if session or token have ended.
     */
    async reload(trx: Knex, caller: Caller): Promise<Rights> {
      if (hasAccount(caller)) {
        const current = await reloadAccount(trx, caller);
        return caller.roleIds ? narrowToRoles(current, caller.roleIds) : current;
      }
      const roles = await findRoles(
        trx,
        caller.rights.grants.map(({ role }) => role.id),
      );
      return {
        ...(caller.rights.token && { token: caller.rights.token }),
        grants: caller.rights.grants.flatMap((grant) => {
          const role = roles.get(grant.role.id);
          return role ? [{ ...grant, role: withoutAdded(role, grant.role) }] : [];
        }),
      };
    },

    /** Current rights of the authority that a job runs for. */
    async forAuthority(authority: Authority): Promise<Rights> {
      if ('userId' in authority) {
        const { userId, roleIds, tokenId } = authority;
        const current = tokenId === undefined ? await forUserId(userId) : await forTokenId(tokenId);
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
export const authorityOf = ({ kind, actorId, rights, roleIds, token }: Caller): Authority =>
  hasAccount({ kind })
    ? {
        actorId,
        userId: actorId,
        ...(roleIds && { roleIds }),
        ...(token && { tokenId: token.id }),
      }
    : {
        actorId,
        grants: rights.grants.map(({ role, targetId }) => ({
          roleId: role.id,
          tenantId: targetId,
        })),
      };
