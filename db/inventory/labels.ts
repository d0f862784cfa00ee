import { PLATFORM, type Scope } from '../../domain/access/scope.ts';
import type { Resource } from '../../domain/inventory/resource.ts';
import { sharesReadIn } from '../../domain/inventory/sharing.ts';
import type { NameSource } from '../core/names.ts';
import { scopeCondition } from '../core/scopeSql.ts';
import { canonicalText, columnOf, scopeColumnsOf, tableOf } from './tables.ts';

/**
 * The labels of records that `findRecord` or `findShared` finds in `scope`. The scope must not be
 * empty: all who may read any inventory read catalogues and what the platform publishes.
 */
export function recordLabels(resource: Resource, scope: Scope, ids: Iterable<string>): NameSource {
  const { name, labelField, sharable, isPlatformPublic } = resource;
  const columns = scopeColumnsOf(resource);
  const readable = [
    columns ? scopeCondition(scope, columns) : { sql: 'TRUE', bindings: [] },
    ...(isPlatformPublic ? [{ sql: 'tenant_id = ?', bindings: [PLATFORM] }] : []),
    ...(sharable ? [{ sql: 'shared_with && ?::text[]', bindings: [sharesReadIn(scope)] }] : []),
  ];
  return {
    kind: name,
    ids,
    table: tableOf(resource),
    // Unlike a cast, concat writes addresses as they are presented.
    label: `concat(${columnOf(labelField)})`,
    where: readable.map(({ sql }) => sql).join(' OR '),
    bindings: readable.flatMap(({ bindings }) => bindings),
    present: (text) => canonicalText(resource, labelField, text),
  };
}
