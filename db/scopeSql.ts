import type { Model, QueryBuilder } from 'objection';
import type { Knex } from './knex.ts';
import type { Scope } from '../domain/scope.ts';

/** The SQL reading of `covers`: a condition that holds for the records inside `scope`. */
export const scopeCondition = (scope: Scope, column = 'tenant_id'): { sql: string; bindings: Knex.RawBinding[] } =>
  scope.kind === 'everywhere'
    ? { sql: 'TRUE', bindings: [] }
    : scope.tenantIds.length === 1
      ? // An equality lets the index on (tenant, key) serve the order too.
        { sql: `${column} = ?`, bindings: [...scope.tenantIds] }
      : { sql: `${column} = ANY (?::text[])`, bindings: [[...scope.tenantIds]] };

/** Narrows a query to the records inside `scope`. */
export function whereInScope<M extends Model, R>(query: QueryBuilder<M, R>, scope: Scope): void {
  const { sql, bindings } = scopeCondition(scope);
  void query.whereRaw(sql, bindings);
}
