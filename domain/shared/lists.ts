/**
 * What a list can be asked, in the form in which it comes from the API and goes to the database. The
 * names of fields are those of an API declaration, never text of a caller.
 */

/** The kind of value of a field: how its values are compared. */
export type FieldKind =
  'text' | 'integer' | 'bigint' | 'number' | 'boolean' | 'time' | 'network' | 'address';

export type ListField = {
  field: string;
  kind: FieldKind;
  /** Records may have no value in it. */
  nullable: boolean;
};

export type FilterValue = string | number | boolean | null;

/** `in`: one of the values. `not`: none of them. The others compare with the only value. */
export const LIST_OPERATORS = ['in', 'not', 'gte', 'gt', 'lte', 'lt'] as const;
export type ListOperator = (typeof LIST_OPERATORS)[number];

export type ListCondition = ListField & {
  operator: ListOperator;
  values: readonly FilterValue[];
  /** For `not`: all other values that the field can have, if these are few. */
  others?: readonly FilterValue[];
};

const COMPARE: Readonly<Record<string, (value: number, bound: number) => boolean>> = {
  gte: (value, bound) => value >= bound,
  gt: (value, bound) => value > bound,
  lte: (value, bound) => value <= bound,
  lt: (value, bound) => value < bound,
};

/** Whether a value satisfies a condition, as in SQL: for records in memory. Times are in milliseconds. */
export function satisfies(
  { kind, operator, values }: ListCondition,
  value: string | number | boolean | null,
): boolean {
  if (operator === 'in') return values.includes(value);
  if (operator === 'not') return !values.includes(value);
  const [text = null] = values;
  const bound = kind === 'time' ? Date.parse(String(text)) : Number(text);
  return value !== null && COMPARE[operator]?.(Number(value), bound) === true;
}

/** The field that a list is sorted by, and then by id. Records without a value are last. */
export type ListSort = ListField & { descending: boolean };

/** The sort value, in the text form of PostgreSQL, and the id of a record. */
export type ListKey = { value: string | null; id: string };

export type ListRequest = {
  where: readonly ListCondition[];
  /** Undefined: by id, newest first. */
  sort: ListSort | undefined;
  /** The last record of the previous page. */
  after: ListKey | undefined;
  limit: number;
  /** Count the records of all pages. */
  count: boolean;
  /** Count the records by the values of these fields. */
  facets: readonly ListField[];
};

/** Most records that a count or a facet counts. */
export const MAX_COUNTED = 10_000;

/** Values of a facet in a response. */
export const MAX_FACET_VALUES = 100;

/** `exact: false`: there are more. */
export type ListCount = { value: number; exact: boolean };

/** `exact: false`: the counts are those of the first records only. */
export type ListFacet = {
  values: { value: string | boolean | number | null; count: number }[];
  exact: boolean;
  /** Records with other values than those listed. */
  others: number;
};

export type ListAnswer<T> = {
  items: T[];
  /** The key of the last item when more records follow. */
  next: ListKey | null;
  /** Null if it took too long. Undefined if it was not asked for. */
  count?: ListCount | null;
  facets?: Record<string, ListFacet | null>;
};

/** A request for a page of all records, newest first. */
export const pageOf = (limit: number, after?: ListKey): ListRequest => ({
  where: [],
  sort: undefined,
  after,
  limit,
  count: false,
  facets: [],
});

/** The same answer with other items. */
export const withItems = <T>(
  { next, count, facets }: ListAnswer<unknown>,
  items: T[],
): ListAnswer<T> => ({
  items,
  next,
  ...(count !== undefined && { count }),
  ...(facets !== undefined && { facets }),
});
