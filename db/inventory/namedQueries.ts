import { PLATFORM, type Scope } from '../../domain/access/scope.ts';
import {
  GLOBAL_VRF,
  MAX_NAMED,
  type DataNeed,
  type Near,
  type NearField,
} from '../../domain/inventory/planSnapshot.ts';
import type { Resource } from '../../domain/inventory/resource.ts';
import { RESOURCES } from '../../domain/inventory/resources/index.ts';
import { sharesReadIn } from '../../domain/inventory/sharing.ts';
import { scopeReasons } from '../core/scopeSql.ts';
import { anyOf, type Sql } from '../core/sql.ts';
import { grouped, type Group, type NeedOf, type QueryPart } from './queryParts.ts';
import { columnOf, columnsOf, scopeColumnsOf, sqlTypeOf, tableOf } from './tables.ts';

type Named = NeedOf<'named'> & { key: string };

/** Best matches that are loaded: of several, a message names some. */
const MAX_BEST = 11;

/** The `key` of the rows of the lookup by name at this position of the needs. */
export const namedKey = (position: number): string => `named ${position}`;

/**
 * Rows by a value, of those that a caller who reads or writes in `visible` may use. The conditions are
 * part of the query: of other tenants any number of records may have the value.
 */
export function namedParts(needs: readonly DataNeed[], visible: Scope): QueryPart[] {
  const named = needs.flatMap((need, i): Named[] =>
    need.kind === 'named' ? [{ ...need, key: namedKey(i) }] : [],
  );
  const sameShape = ({ resource, field, near }: Named) =>
    [resource, field, ...Object.keys(near ?? {})].join('|');
  return grouped(named, sameShape).map((group) => {
    const resource = RESOURCES[group[0].resource];
    const reasons = usableReasons(resource, visible);
    return lookup(
      group,
      group[0].near
        ? [bestMatches(group[0], reasons)]
        : reasons.map((one) => matches(group[0], one)),
    );
  });
}

/** The reasons for which a record can be referred to by name, each for an index of its own. */
function usableReasons(resource: Resource, visible: Scope): Sql[] {
  const columns = scopeColumnsOf(resource);
  if (!columns || visible.kind === 'everywhere') return [{ sql: 'TRUE', bindings: [] }];
  const inside = scopeReasons(visible, columns);
  const ofPlatform = `tenant_id = '${PLATFORM}'`;
  if (resource.isPlatformPublic) return [...inside, { sql: ofPlatform, bindings: [] }];
  if (!resource.sharable) return inside;
  const sql = `(${ofPlatform} AND shared_with <> '{}' AND shared_with && (?::text[] || asked.tenant_id))`;
  return [...inside, { sql, bindings: [sharesReadIn(visible)] }];
}

/** The rows with the value that is asked for, under a condition. */
function matches({ resource: name, field }: Named, { sql, bindings }: Sql): Sql {
  const resource = RESOURCES[name];
  const where = `${columnOf(field)} = asked.value AND ${sql}`;
  return {
    sql: `SELECT ${columnsOf(resource)} FROM ${tableOf(resource)} WHERE ${where} LIMIT ${MAX_NAMED}`,
    bindings,
  };
}

/** SQL: the value by which a field of the rows `t` decides (`nearValueOf`). What is in a VRF has a column for indexes. */
function nearColumnOf({ name }: Resource, field: NearField): string {
  if (field !== 'vrfId') return `t.${columnOf(field)}`;
  return name === 'interfaces' ? `coalesce(t.vrf_id, '${GLOBAL_VRF}')` : 't.vrf_key';
}

/** The column of `asked` with the value of a field in `near`. */
const askedColumnOf = (field: NearField): string => `near_${columnOf(field)}`;

const nearFieldsOf = (near: Near = {}): NearField[] => Object.keys(near) as NearField[];

/**
 * The rows that match the values in `near` best: the first of two fields decides. For every set
 * of the fields, the rows that have the values of all of them; the set of the best rows comes first, and
 * has no others. Each is a lookup in an index.
 */
function bestMatches({ resource: name, field, near }: Named, reasons: readonly Sql[]): Sql {
  const resource = RESOURCES[name];
  const fields = nearFieldsOf(near);
  const usable = anyOf(reasons);
  const sets = Array.from({ length: 2 ** fields.length - 1 }, (_, i) => 2 ** fields.length - 1 - i);
  const parts = sets.map((set): Sql => {
    const isIn = (i: number) => (set & (2 ** (fields.length - 1 - i))) !== 0;
    const same = fields.filter((_, i) => isIn(i));
    const where = [
      `${columnOf(field)} = asked.value`,
      ...same.map((each) => `${nearColumnOf(resource, each)} = asked.${askedColumnOf(each)}`),
      usable.sql,
    ];
    return {
      sql: `(SELECT id, ${set} AS fit FROM ${tableOf(resource)} AS t WHERE ${where.join(' AND ')} LIMIT ${MAX_BEST})`,
      bindings: usable.bindings,
    };
  });
  return {
    sql: `SELECT ${columnsOf(resource)} FROM ${tableOf(resource)} WHERE id IN (
      SELECT id FROM (${parts.map(({ sql }) => sql).join(' UNION ALL ')}) AS fitting
      ORDER BY fit DESC LIMIT ${MAX_BEST})`,
    bindings: parts.flatMap(({ bindings }) => bindings),
  };
}

/** For each need of a group the rows of `queries`, which name its values `asked`. */
function lookup(group: Group<Named>, queries: readonly Sql[]): QueryPart {
  const [{ resource: name, field, near }] = group;
  const resource = RESOURCES[name];
  const fields = nearFieldsOf(near);
  const columns = ['key', 'value', 'tenant_id', ...fields.map(askedColumnOf)];
  const types = ['text', sqlTypeOf(resource, field), 'text', ...fields.map(() => 'text')];
  const found =
    queries.length === 0
      ? `SELECT ${columnsOf(resource)} FROM ${tableOf(resource)} WHERE FALSE`
      : queries.map(({ sql }) => `(${sql})`).join(' UNION ALL ');
  return {
    sql: `SELECT '${name}' AS part, asked.key, to_json(x) AS row
      FROM unnest(${types.map((type) => `?::${type}[]`).join(', ')}) AS asked (${columns.join(', ')})
      CROSS JOIN LATERAL (${found}) AS x`,
    bindings: [
      group.map(({ key }) => key),
      group.map(({ value }) => value),
      group.map(({ tenantId }) => tenantId),
      ...fields.map((each) => group.map((need) => need.near?.[each] ?? '')),
      ...queries.flatMap(({ bindings }) => bindings),
    ],
  };
}
