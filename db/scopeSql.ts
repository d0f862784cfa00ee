import type { QueryBuilder, Model } from 'objection';
import type { Scope } from '../domain/scope.ts';

/** Narrows a query to the records inside `scope`; the SQL reading of `covers`. */
export function whereInScope<M extends Model, R>(query: QueryBuilder<M, R>, scope: Scope, column = 'tenant_id'): void {
  if (scope.kind === 'tenants') void query.whereIn(column, [...scope.tenantIds]);
}
