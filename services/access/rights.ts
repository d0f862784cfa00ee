import { createHash } from 'node:crypto';
import { LRUCache } from 'lru-cache';
import { findGrants, findRoles, findStanding, principalsOf, type Standing } from '../../db/access/access.ts';
import type { Knex } from '../../db/core/knex.ts';
import { isLive } from '../../db/auth/sessions.ts';
import type { Authority, Caller } from '../../domain/shared/caller.ts';
import { BUILT_IN_ROLES, type Role } from '../../domain/access/roles.ts';
import { grantAtTenant, NO_RIGHTS, type Rights } from '../../domain/access/scope.ts';

export type UserRights = ReturnType<typeof createRights>;

/** Grants that a process keeps worked out, of all users together; the names of groups count by their length. */
const MAX_GRANTS_KEPT = 200_000;
const CHARACTERS_A_GRANT = 50;

const MAX_HEADERS_KEPT = 1_000;

const charactersOf = ({ principals = [] }: Rights): number =>
  principals.reduce((sum, principal) => sum + principal.length, 0);

/** Finds out what somebody holds. What was read once holds until a grant or a role changes. */
export function createRights({ db }: { db: Knex }) {
  const ofUsers = new LRUCache<string, { version: number; rights: Rights }>({
    maxSize: MAX_GRANTS_KEPT,
    sizeCalculation: ({ rights }) =>
      rights.grants.length + 1 + Math.ceil(charactersOf(rights) / CHARACTERS_A_GRANT),
  });
  const ofHeaders = new LRUCache<string, Rights>({ max: MAX_HEADERS_KEPT });

  const atTenant = (
    roleIds: readonly string[],
    tenantId: string,
    roles: ReadonlyMap<string, Role>,
  ): Rights => ({
    grants: roleIds.flatMap((id) => {
      const role = roles.get(id);
      return role ? [grantAtTenant(role, tenantId)] : [];
    }),
  });

  async function ofUser(
    userId: string,
    { enabled, providerId, externalGroups, version }: Standing,
  ): Promise<Rights> {
    if (!enabled) return NO_RIGHTS;
    const principals = principalsOf(userId, providerId, externalGroups);
    const key = createHash('sha256').update(JSON.stringify(principals)).digest('base64url');
    const known = ofUsers.get(key);
    if (known?.version === version) return known.rights;
    const rights = { grants: await findGrants(db, principals), principals };
    ofUsers.set(key, { version, rights });
    return rights;
  }

  /** The same for a user of whom only the id is known; nothing for one who is disabled or unknown. */
  async function ofUserId(userId: string): Promise<Rights> {
    const standing = await findStanding(db, userId);
    return standing ? ofUser(userId, standing) : NO_RIGHTS;
  }

  return {
    /** What a user holds by assignments, and by the mappings of the groups they were in at their last login. */
    ofUser,

    /** What role ids from a gateway give at its tenant; unknown ones give nothing. */
    async ofRoles(roleIds: readonly string[], tenantId: string): Promise<Rights> {
      if (roleIds.some((id) => !BUILT_IN_ROLES.has(id)))
        return atTenant(roleIds, tenantId, await findRoles(db, roleIds));
      const key = JSON.stringify([tenantId, ...roleIds]);
      const known = ofHeaders.get(key);
      if (known) return known;
      const rights = atTenant(roleIds, tenantId, BUILT_IN_ROLES);
      ofHeaders.set(key, rights);
      return rights;
    },

    /**
     * What a caller holds now, read within a transaction: what was worked out when the request came may be old after
     * a wait. Nothing, when the session has ended.
     */
    async again(trx: Knex, caller: Caller): Promise<Rights> {
      if (caller.session) {
        const live = await isLive(trx, caller.session.id);
        const standing = await findStanding(trx, caller.actorId);
        if (!live || !standing?.enabled) return NO_RIGHTS;
        const principals = principalsOf(
          caller.actorId,
          standing.providerId,
          standing.externalGroups,
        );
        return { grants: await findGrants(trx, principals), principals };
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

    /** What whoever asked for a job holds now. */
    async ofAuthority(authority: Authority): Promise<Rights> {
      if ('userId' in authority) return ofUserId(authority.userId);
      const roles = await findRoles(
        db,
        authority.grants.map(({ roleId }) => roleId),
      );
      return {
        grants: authority.grants.flatMap(
          ({ roleId, tenantId }) => atTenant([roleId], tenantId, roles).grants,
        ),
      };
    },
  };
}

/** What is kept of a caller for work that goes on without them. */
export const authorityOf = ({ kind, actorId, rights }: Caller): Authority =>
  kind === 'session'
    ? { actorId, userId: actorId }
    : {
        actorId,
        grants: rights.grants.map(({ role, targetId }) => ({
          roleId: role.id,
          tenantId: targetId,
        })),
      };
