import { PLATFORM, type Scope } from '../../domain/access/scope.ts';
import type { Resource } from '../../domain/inventory/resource.ts';
import { sharesReadIn } from '../../domain/inventory/sharing.ts';
import { scopeReasons } from '../core/scopeSql.ts';
import { anyOf, type Sql } from '../core/sql.ts';
import { scopeColumnsOf } from './tables.ts';

/**
 * SQL: a record is shared with a tenant of `scope`, or is of the platform and holds for all. Undefined
 * for a resource without such records.
 */
export function sharedCondition(
  { sharable, isPlatformPublic }: Resource,
  scope: Scope,
): Sql | undefined {
  if (isPlatformPublic) return { sql: 'tenant_id = ?', bindings: [PLATFORM] };
  if (!sharable) return undefined;
  // The condition of the index.
  const sql = `(shared_with <> '{}' AND shared_with && ?::text[])`;
  return { sql, bindings: [sharesReadIn(scope)] };
}

/**
 * SQL: a record is one that `findRecord` or `findShared` finds in `scope`. The scope must not be empty:
 * all who may read any inventory read catalogues and what the platform publishes.
 */
export const readableCondition = (resource: Resource, scope: Scope): Sql =>
  anyOf(readableReasons(resource, scope));

/** The reasons for which a record is readable, as in `scopeReasons`. */
export function readableReasons(resource: Resource, scope: Scope): Sql[] {
  const columns = scopeColumnsOf(resource);
  if (!columns || scope.kind === 'everywhere') return [{ sql: 'TRUE', bindings: [] }];
  return [...scopeReasons(scope, columns), sharedCondition(resource, scope) ?? []].flat();
}
