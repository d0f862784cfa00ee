import { findRoles, keepingAdministrator, lockAccess } from '../../db/access/access.ts';
import type { Commit } from '../../db/commit.ts';
import { isForeignKeyViolation, isUniqueViolation } from '../../db/core/constraints.ts';
import { keysetPage, whereGiven, type Page, type PageRequest } from '../../db/core/keyset.ts';
import type { Knex } from '../../db/core/knex.ts';
import { GrantRecord } from '../../db/models/GrantRecord.ts';
import { whereInScope } from '../../db/core/scopeSql.ts';
import type { Caller } from '../../domain/shared/caller.ts';
import { AppError, invalidField, notFound } from '../../domain/shared/errors.ts';
import type { Role } from '../../domain/access/roles.ts';
import type { Ids } from '../../platform/ids.ts';
import type { DispatchTask } from '../../temporal/contracts.ts';
import type { Access } from '../access.ts';
import { noteGrant } from '../grantTrail.ts';
import { resolveTarget, type TargetRequest } from '../target.ts';

export type Grants = ReturnType<typeof createGrants>;

/** Who gets it: a user, or everybody in a group at a provider. */
export type Grantee = { userId: string } | { providerId: string; externalGroup: string };

export type GrantFilter = {
  userId?: string;
  providerId?: string;
  externalGroup?: string;
  roleId?: string;
  tenantId?: string;
  siteId?: string;
  deviceId?: string;
};

type Kind = GrantRecord['kind'];

const PLACE_COLUMNS = { tenant: 'tenant_id', site: 'site_id', device: 'device_id' };

type Deps = { db: Knex; commit: Commit<DispatchTask>; access: Access; ids: Ids };

/** Roles given to users (assignments) and to groups at identity providers (mappings). */
export function createGrants({ db, commit, access, ids }: Deps) {
  async function findRole(trx: Knex, roleId: string): Promise<Role> {
    const role = (await findRoles(trx, [roleId])).get(roleId);
    if (!role)
      throw invalidField('body', '/roleId', 'not_found', `there is no role with id ${roleId}`);
    return role;
  }

  async function find(caller: Caller, kind: Kind, id: string): Promise<GrantRecord> {
    const query = GrantRecord.query(db).findById(id).where({ kind });
    whereInScope(query, access.scope(caller, 'rbac:read'), PLACE_COLUMNS);
    const grant = await query;
    if (!grant) throw notFound(kind, id);
    return grant;
  }

  return {
    /** One grant inside the caller's scope. Error: `not_found`. */
    read: find,

    /** Grants of one kind inside the caller's scope, newest first. */
    async list(
      caller: Caller,
      kind: Kind,
      filter: GrantFilter,
      page: PageRequest,
    ): Promise<Page<GrantRecord>> {
      const query = GrantRecord.query(db).where({ kind });
      whereInScope(query, access.scope(caller, 'rbac:read'), PLACE_COLUMNS);
      whereGiven(query, {
        user_id: filter.userId,
        provider_id: filter.providerId,
        external_group: filter.externalGroup,
        role_id: filter.roleId,
        tenant_id: filter.tenantId,
        site_id: filter.siteId,
        device_id: filter.deviceId,
      });
      return keysetPage(query, page);
    },

    /**
     * Gives a role. The caller needs `rbac:write` and every permission of the role where it is given.
     * Errors: `permission_denied`, `invalid_request` (user, provider, role, site or device unknown), `conflict`.
     */
    async create(
      caller: Caller,
      grantee: Grantee,
      roleId: string,
      target: TargetRequest,
    ): Promise<GrantRecord> {
      const { level, place } = await resolveTarget(
        db,
        target,
        access.scope(caller, 'rbac:write'),
        'body',
      );
      await access.require(caller, 'rbac:write', place);
      const kind: Kind = 'userId' in grantee ? 'assignment' : 'mapping';
      return access.denying(caller, () =>
        commit({ ...caller, tenantId: place.tenantId }, async (work) => {
          const trx = await work.trx();
          // Role and caller must stay what they are while the right to give it is checked.
          await lockAccess(trx);
          const now = await access.current(caller, trx);
          access.mustHave(now, 'rbac:write', place);
          access.mustHold(now, [{ role: await findRole(trx, roleId), place }]);
          const grant = await GrantRecord.query(trx)
            .insertAndFetch({
              id: ids.next(kind === 'assignment' ? 'asg' : 'map'),
              kind,
              ...grantee,
              roleId,
              level,
              tenantId: place.tenantId,
              siteId: place.siteId ?? null,
              deviceId: place.deviceId ?? null,
              createdBy: caller.actorId,
              createdAt: work.now,
            })
            .catch((error: unknown) => {
              throw refusal(error, grantee);
            });
          noteGrant(work, 'create', grant);
          return grant;
        }),
      );
    },

    /** Takes a role back. Errors: `not_found`, `permission_denied`, `last_administrator`. */
    async remove(caller: Caller, kind: Kind, id: string): Promise<void> {
      const known = await find(caller, kind, id);
      await access.require(caller, 'rbac:write', known);
      await access.denying(caller, () =>
        commit({ ...caller, tenantId: known.tenantId }, async (work) => {
          const trx = await work.trx();
          await keepingAdministrator(trx, async () => {
            access.mustHave(await access.current(caller, trx), 'rbac:write', known);
            if ((await GrantRecord.query(trx).deleteById(id)) === 0) throw notFound(kind, id);
          });
          noteGrant(work, 'delete', known);
        }),
      );
    },
  };
}

function refusal(error: unknown, grantee: Grantee): unknown {
  if (isUniqueViolation(error)) return new AppError('conflict', 'The role is already given there.');
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
