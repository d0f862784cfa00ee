import { listHolders, type HolderRow } from '../../db/access/holders.ts';
import { findRolesWith } from '../../db/access/access.ts';
import type { Knex } from '../../db/core/knex.ts';
import type { Caller } from '../../domain/shared/caller.ts';
import type { ListAnswer, ListRequest } from '../../domain/shared/lists.ts';
import type { Access } from '../access/access.ts';
import { requesterOf, resolveResourceScope } from '../access/resourceScope.ts';

export type Deciders = ReturnType<typeof createDeciders>;

/** Where a request would be, and text in the names of accounts. */
type Asked = {
  tenantId?: string | undefined;
  siteId?: string | undefined;
  deviceId?: string | undefined;
  q?: string | undefined;
};

type RoleName = { id: string; name: string };

/** Who could decide on requests, for callers who may ask. */
export function createDeciders({ db, access }: { db: Knex; access: Access }) {
  return {
    /**
     * Roles that include the permission to decide, and enabled accounts that hold one at the scope of a
     * request. A caller learns only of accounts of the tenant where it may ask; at the platform of all.
     * Errors: `permission_denied`, `invalid_request` (tenant, site, device).
     */
    async list(
      caller: Caller,
      { tenantId, siteId, deviceId, q }: Asked,
      request: ListRequest,
    ): Promise<ListAnswer<HolderRow> & { roles: RoleName[] }> {
      const { resourceScope } = await resolveResourceScope(
        db,
        {
          ...(siteId === undefined && deviceId === undefined
            ? { tenantId: tenantId ?? caller.tenantId }
            : tenantId !== undefined && { tenantId }),
          ...(siteId !== undefined && { siteId }),
          ...(deviceId !== undefined && { deviceId }),
        },
        requesterOf(access, caller, 'workflow:write'),
        'query',
      );
      await access.require(caller, 'workflow:write', resourceScope);
      const ofTenant =
        access.scope(caller, 'workflow:write').kind === 'everywhere'
          ? undefined
          : resourceScope.tenantId;
      const answer = await listHolders(
        db,
        { permission: 'workflow:approve', resourceScope, ofTenant, q },
        request,
      );
      return { ...answer, roles: await findRolesWith(db, 'workflow:approve') };
    },
  };
}
