import { raw } from 'objection';
import type { Permission } from '../../domain/access/permissions.ts';
import type { ResourceScope } from '../../domain/access/scope.ts';
import type { ListAnswer, ListRequest } from '../../domain/shared/lists.ts';
import type { Knex } from '../core/knex.ts';
import { readList } from '../core/lists.ts';
import { providerName, User, whereUserText } from '../models/User.ts';
import { coveringGrants, mayDecideSql } from './access.ts';

/** An account, and where it has its user name: see `providerName`. */
export class HolderRow extends User {
  declare provider: string | null;
}

/**
 * The accounts of whom `findHolders` says that they are enabled and hold a permission at a resource scope, by an
 * assignment or by the mapping of a group; of a tenant if one is named.
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
          .whereRaw(mayDecideSql('users'))
          .whereRaw(
            `id IN (
               SELECT g.user_id FROM grants AS g WHERE g.kind = 'assignment' AND ${covering.sql}
               UNION ALL
               SELECT m.id FROM grants AS g JOIN users AS m
                 ON m.provider_id = g.provider_id AND m.external_groups @> ARRAY[g.external_group]
               WHERE g.kind = 'mapping' AND ${covering.sql})`,
            [...covering.bindings, ...covering.bindings],
          );
        if (ofTenant !== undefined) void query.where({ tenant_id: ofTenant });
        if (q !== undefined) whereUserText(query, q);
        return query;
      },
    },
    request,
  );
}
