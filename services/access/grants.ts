import { isDeepStrictEqual } from 'node:util';
import { findRoles, guardLastAdministrator } from '../../db/access/access.ts';
import type { Commit } from '../../db/core/commit.ts';
import { isForeignKeyViolation, isUniqueViolation } from '../../db/core/constraints.ts';
import { readList } from '../../db/core/lists.ts';
import type { ListAnswer, ListRequest } from '../../domain/shared/lists.ts';
import type { Knex } from '../../db/core/knex.ts';
import { GrantRecord } from '../../db/models/GrantRecord.ts';
import { whereInScope } from '../../db/core/scopeSql.ts';
import type { Caller } from '../../domain/shared/caller.ts';
import { AppError, invalidField, notFound } from '../../domain/shared/errors.ts';
import { RBAC_READERS } from '../../domain/access/permissions.ts';
import type { Role } from '../../domain/access/roles.ts';
import type { Ids } from '../../platform/ids.ts';
import type { Access } from './access.ts';
import { createCommitAccessChange } from './commitAccessChange.ts';
import { grantRecordOf } from './grantAudit.ts';
import { requesterOf, resolveResourceScope, type ResourceScopeRequest } from './resourceScope.ts';

export type Grants = ReturnType<typeof createGrants>;

/** Holder of a grant: a user, or the members of a provider's group. */
export type Grantee = { userId: string } | { providerId: string; externalGroup: string };

type GrantKind = GrantRecord['kind'];

const SCOPE_COLUMNS = { tenant: 'tenant_id', site: 'site_id', device: 'device_id' };

type Deps = { db: Knex; commit: Commit; access: Access; ids: Ids };

/** Grants: role assignments (users) and provider mappings (groups of identity providers). */
export function createGrants({ db, commit, access, ids }: Deps) {
  const commitChange = createCommitAccessChange({ commit, access });

  async function findRole(trx: Knex, roleId: string): Promise<Role> {
    const role = (await findRoles(trx, [roleId])).get(roleId);
    if (!role)
      throw invalidField('body', '/roleId', 'not_found', `there is no role with id ${roleId}`);
    return role;
  }

  async function findVisible(
    caller: Caller,
    kind: GrantKind,
    id: string,
  ): Promise<GrantRecord | undefined> {
    const query = GrantRecord.query(db).findById(id).where({ kind });
    whereInScope(query, access.scope(caller, ...RBAC_READERS), SCOPE_COLUMNS);
    return query;
  }

  return {
    /** One grant inside the caller's scope. Error: `not_found`. */
    async read(caller: Caller, kind: GrantKind, id: string): Promise<GrantRecord> {
      const grant = await findVisible(caller, kind, id);
      if (!grant) throw notFound(kind, id);
      return grant;
    },

    /** Grants of one kind inside the caller's scope. */
    list(caller: Caller, kind: GrantKind, request: ListRequest): Promise<ListAnswer<GrantRecord>> {
      const visible = () => {
        const query = GrantRecord.query(db).where({ kind });
        whereInScope(query, access.scope(caller, ...RBAC_READERS), SCOPE_COLUMNS);
        return query;
      };
      return readList({ db, visible }, request);
    },

    /**
     * Grants a role. The caller needs `rbac:write` and every permission of the role at the scope.
     * Errors: `permission_denied`, `invalid_request` (unknown user, provider, role, tenant, site
     * or device), `conflict` (the grant exists).
     */
    async create(
      caller: Caller,
      grantee: Grantee,
      roleId: string,
      target: ResourceScopeRequest,
    ): Promise<GrantRecord> {
      const resolve = (on: Knex) =>
        resolveResourceScope(on, target, requesterOf(access, caller, 'rbac:write'), 'body');
      const { level, resourceScope } = await resolve(db);
      await access.require(caller, 'rbac:write', resourceScope);
      const kind: GrantKind = 'userId' in grantee ? 'assignment' : 'mapping';
      return commitChange(caller, 'rbac:write', resourceScope, async (work, currentCaller, trx) => {
        // It may have moved to another tenant while this change waited; from now on a move waits.
        if (!isDeepStrictEqual((await resolve(trx)).resourceScope, resourceScope))
          throw new AppError(
            'conflict',
            `The ${level} has moved in the meantime; send the request again.`,
          );
        access.assertHolds(currentCaller, [{ role: await findRole(trx, roleId), resourceScope }]);
        const grant = await GrantRecord.query(trx)
          .insertAndFetch({
            id: ids.next(kind === 'assignment' ? 'asg' : 'map'),
            kind,
            ...grantee,
            roleId,
            level,
            tenantId: resourceScope.tenantId,
            siteId: resourceScope.siteId ?? null,
            deviceId: resourceScope.deviceId ?? null,
            createdBy: caller.actorId,
            createdAt: work.now,
          })
          .catch((error: unknown) => {
            throw toGrantError(error, grantee);
          });
        grantRecordOf(grant).created(work, grant);
        work.result(grant.id);
        return grant;
      });
    },

    /** Revokes a grant. Errors: `not_found`, `permission_denied`, `last_administrator`. */
    async remove(caller: Caller, kind: GrantKind, id: string): Promise<void> {
      const known = await access.requireToAct(caller, await findVisible(caller, kind, id), {
        permission: 'rbac:write',
        readPermission: 'rbac:read',
        missing: () => notFound(kind, id),
      });
      await commitChange(caller, 'rbac:write', known, async (work, _currentCaller, trx) => {
        await guardLastAdministrator(trx, async () => {
          if ((await GrantRecord.query(trx).deleteById(id)) === 0) throw notFound(kind, id);
        });
        grantRecordOf(known).deleted(work, known);
      });
    },
  };
}

function toGrantError(error: unknown, grantee: Grantee): unknown {
  if (isUniqueViolation(error))
    return new AppError('conflict', 'The role is already granted at this scope.');
  if (!isForeignKeyViolation(error)) return error;
  return 'userId' in grantee
    ? invalidField('body', '/userId', 'not_found', `there is no user with id ${grantee.userId}`)
    : invalidField(
        'body',
        '/providerId',
        'not_found',
        `there is no provider with id ${grantee.providerId}`,
      );
}
