import { raw } from 'objection';
import type { Permission } from '../../domain/access/permissions.ts';
import type { ResourceScope } from '../../domain/access/scope.ts';
import type { ListAnswer, ListRequest } from '../../domain/shared/lists.ts';
import type { Knex } from '../core/knex.ts';
import { readList } from '../core/lists.ts';
import { providerName, User, whereUserText } from '../models/User.ts';
import { coveringGrants } from './access.ts';

/** An account, and where it has its user name: see `providerName`. */
export class HolderRow extends User {
  declare provider: string | null;
}

/**
 * Enabled accounts, of a tenant if one is named, with an assignment that includes a permission and
 * covers a resource scope.
 */
export function listHolders(
  db: Knex,
  {
    permission,
    resourceScope,
    ofTenant,
    q,
  }: {
    permission: Permission;
    resourceScope: ResourceScope;
    ofTenant: string | undefined;
    q: string | undefined;
  },
  request: ListRequest,
): Promise<ListAnswer<HolderRow>> {
  const covering = coveringGrants('g', permission, resourceScope);
  return readList(
    {
      db,
      visible() {
        const query = HolderRow.query(db)
          .select('id', 'username', 'display_name', raw(`${providerName('users')} AS provider`))
          .where({ enabled: true })
          .whereRaw(
            `id IN (SELECT g.user_id FROM grants AS g WHERE g.kind = 'assignment' AND ${covering.sql})`,
            covering.bindings,
          );
        if (ofTenant !== undefined) void query.where({ tenant_id: ofTenant });
        if (q !== undefined) whereUserText(query, q);
        return query;
      },
    },
    request,
  );
}
