import type { Scope } from '../../domain/access/scope.ts';
import type { Resource } from '../../domain/inventory/resource.ts';
import type { NameSource } from '../core/names.ts';
import { readableCondition } from './readable.ts';
import { canonicalText, columnOf, tableOf } from './tables.ts';

/** SQL: the label of a record. Unlike a cast, concat writes addresses as they are presented. */
export const labelSql = ({ labelField }: Resource): string => `concat(${columnOf(labelField)})`;

/** The label of a record in responses, from that of the database. */
export const presentLabel = (resource: Resource, text: string): string =>
  canonicalText(resource, resource.labelField, text);

/** The labels of records that a reader in `scope`, which is not empty, may read. */
export function recordLabels(resource: Resource, scope: Scope, ids: Iterable<string>): NameSource {
  const { sql, bindings } = readableCondition(resource, scope);
  return {
    kind: resource.name,
    ids,
    table: tableOf(resource),
    label: labelSql(resource),
    where: sql,
    bindings,
    present: (text) => presentLabel(resource, text),
  };
}
