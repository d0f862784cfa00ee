import { MINUTE_MS } from '../../domain/shared/durations.ts';
import { minIdAt, type IdKind } from '../../platform/ids.ts';
import type { FieldKind, FilterValue, ListCondition } from '../../domain/shared/lists.ts';
import { allOf, anyOf, type Sql } from './sql.ts';

const SQL_TYPES: Readonly<Record<FieldKind, string>> = {
  text: 'text',
  integer: 'integer',
  bigint: 'bigint',
  number: 'double precision',
  boolean: 'boolean',
  time: 'timestamptz',
  network: 'cidr',
  address: 'inet',
};

/** The PostgreSQL type of the values of a field. */
export const sqlTypeOf = (kind: FieldKind): string => SQL_TYPES[kind];

/** The column of a field that has its name. */
export const columnOf = (field: string): string =>
  field.replaceAll(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);

const NONE: Sql = { sql: 'FALSE', bindings: [] };
const ALL: Sql = { sql: 'TRUE', bindings: [] };

/** A column that has one of `values`. With a single one, an index on (column, id) has the order. */
export function isOneOf(column: string, type: string, values: readonly FilterValue[]): Sql {
  const given = textsOf(values);
  const parts: Sql[] = [];
  if (given.length === 1) parts.push({ sql: `${column} = ?::${type}`, bindings: [...given] });
  if (given.length > 1) parts.push({ sql: `${column} = ANY (?::${type}[])`, bindings: [given] });
  if (given.length < values.length) parts.push({ sql: `${column} IS NULL`, bindings: [] });
  return anyOf(parts);
}

/** The values that are not null. PostgreSQL reads all types from text. */
const textsOf = (values: readonly FilterValue[]): string[] =>
  values.filter((value) => value !== null).map(String);

/** The order of values as PostgreSQL has it, for the kinds of which it is certain. Texts are compared as bytes. */
const ORDERS: Readonly<Partial<Record<FieldKind, (one: string, other: string) => number>>> = {
  text: (one, other) => Buffer.compare(Buffer.from(one), Buffer.from(other)),
  integer: (one, other) => Number(one) - Number(other),
  number: (one, other) => Number(one) - Number(other),
  bigint: (one, other) => Number(BigInt(one) - BigInt(other)),
};

/**
 * A column with a value other than those given. An index finds ranges, but not what differs from a value:
 * nearly all records may have it, and finding the few others would read them all.
 */
function differsFrom(column: string, kind: FieldKind, given: readonly string[]): Sql {
  const type = sqlTypeOf(kind);
  const order = ORDERS[kind];
  if (!order) return { sql: `${column} <> ALL (?::${type}[])`, bindings: [[...given]] };
  const sorted = [...new Set(given)].sort(order);
  const value = kind === 'text' ? '?::text COLLATE "C"' : `?::${type}`;
  const ranges = [undefined, ...sorted].map((after, at) => {
    const before = sorted[at];
    return allOf([
      ...(after === undefined ? [] : [{ sql: `${column} > ${value}`, bindings: [after] }]),
      ...(before === undefined ? [] : [{ sql: `${column} < ${value}`, bindings: [before] }]),
    ]);
  });
  return anyOf(ranges);
}

/** A column that has none of `values`. A record without a value has none, unless null is one. */
function isNoneOf(column: string, kind: FieldKind, values: readonly FilterValue[]): Sql {
  const given = textsOf(values);
  const excludesNull = given.length < values.length;
  if (given.length === 0)
    return excludesNull ? { sql: `${column} IS NOT NULL`, bindings: [] } : ALL;
  const differs = differsFrom(column, kind, given);
  return excludesNull ? differs : anyOf([{ sql: `${column} IS NULL`, bindings: [] }, differs]);
}

/** True where a condition on columns that are never null is false. */
export const isOtherThan = ({ sql, bindings }: Sql): Sql => ({ sql: `NOT ${sql}`, bindings });

const COMPARISONS = { gte: '>=', gt: '>', lte: '<=', lt: '<' } as const;

/** The SQL form of a condition on a column. */
export function conditionSql(
  column: string,
  { kind, operator, values, others, nullable }: ListCondition,
): Sql {
  const type = sqlTypeOf(kind);
  if (operator === 'in') return isOneOf(column, type, values);
  if (operator === 'not') {
    // Few other values are found by an index in the order of the list.
    if (!others)
      return isNoneOf(column, kind, nullable ? values : values.filter((v) => v !== null));
    return others.length === 0 ? NONE : isOneOf(column, type, others);
  }
  const [value = null] = values;
  return { sql: `${column} ${COMPARISONS[operator]} ?::${type}`, bindings: [value] };
}

/**
 * A record that a commit writes has the time at which that began, and an id or a sequence of later. The longest
 * are large restores.
 */
export const LONGEST_COMMIT_MS = 30 * MINUTE_MS;

/**
 * A condition on the time of creation, for a table whose ids start with it: ids narrow the key that
 * orders the list. `toleranceMs` is the most by which the two differ; with `laterMs`, an id may be younger
 * than its record by that time. With `earlierIds`, an id may be older than its record by any time, as that of a
 * record which a plan has created.
 */
export function createdAtSql(
  kind: IdKind,
  { operator, values }: ListCondition,
  {
    toleranceMs,
    laterMs = toleranceMs,
    earlierIds = false,
    column = 'created_at',
    id = 'id',
  }: {
    toleranceMs: number;
    laterMs?: number;
    earlierIds?: boolean;
    column?: string;
    id?: string;
  },
): Sql | undefined {
  const isLower = operator === 'gte' || operator === 'gt';
  if (operator === 'in' || operator === 'not') return undefined;
  const [value = null] = values;
  const bound = new Date(Date.parse(String(value)) + (isLower ? -toleranceMs : laterMs));
  const time: Sql = {
    sql: `${column} ${COMPARISONS[operator]} ?::timestamptz`,
    bindings: [value],
  };
  if (isLower && earlierIds) return time;
  return allOf([
    time,
    { sql: `${id} ${isLower ? '>=' : '<='} ?`, bindings: [minIdAt(kind, bound)] },
  ]);
}

/** A condition on the time that ids start with. The ids of one time are all inside the range, or all outside. */
export function idTimeSql(kind: IdKind, { operator, values }: ListCondition): Sql | undefined {
  if (operator === 'in' || operator === 'not') return undefined;
  const time = Date.parse(String(values[0]));
  const isAfterIt = operator === 'gt' || operator === 'lte';
  const bound = minIdAt(kind, new Date(time + (isAfterIt ? 1 : 0)));
  return {
    sql: `id ${operator === 'gte' || operator === 'gt' ? '>=' : '<'} ?`,
    bindings: [bound],
  };
}
