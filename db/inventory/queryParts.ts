import type { ResourceName } from '../../domain/inventory/names.ts';
import type { DataNeed } from '../../domain/inventory/planSnapshot.ts';
import { RESOURCES } from '../../domain/inventory/resources/index.ts';
import type { Sql } from '../core/sql.ts';
import { columnsOf, tableOf } from './tables.ts';

/** A common table expression that parts of a union use. It may be recursive. */
export type SharedQuery = Sql;

/**
 * One part of a union. Its columns are `part`, `key` and `row`, see `FoundRow` in `load.ts`. The
 * queries `before` the union are computed once; parts of different needs have different names for them.
 */
export type QueryPart = Sql & { before?: readonly SharedQuery[] };

export type NeedOf<K extends DataNeed['kind']> = Extract<DataNeed, { kind: K }>;
export const ofKind = <K extends DataNeed['kind']>(
  needs: readonly DataNeed[],
  kind: K,
): NeedOf<K>[] => needs.filter((need): need is NeedOf<K> => need.kind === kind);

export type Group<T> = [T, ...T[]];

export const grouped = <T>(items: readonly T[], keyOf: (item: T) => string): Group<T>[] =>
  [...Map.groupBy(items, keyOf).values()] as Group<T>[];

/** SQL: rows of a resource, with a key that says how they were loaded. */
export const select = (name: ResourceName, where: string, key?: string): string => {
  const resource = RESOURCES[name];
  return `SELECT '${name}' AS part, ${key ? `'${key}'` : 'NULL'} AS key, to_json(x) AS row FROM (SELECT ${columnsOf(resource)} FROM ${tableOf(resource)} ${where}) AS x`;
};
