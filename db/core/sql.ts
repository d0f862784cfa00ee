import type { Knex } from './knex.ts';

/** A part of a statement. Every `?` in the text is one of the bindings. */
export type Sql = { sql: string; bindings: Knex.RawBinding[] };

/**
 * A text with numbered values, as PostgreSQL has them, instead of question marks. Two of them are the operator `?`
 * of PostgreSQL.
 */
export function numbered(sql: string): string {
  let values = 0;
  return sql.replaceAll(/\?\??/g, (mark) => (mark === '??' ? '?' : `$${++values}`));
}

type Scalar = string | number | boolean | Date;

/** An array as a binding. The type that Knex has for bindings allows neither NULL in arrays nor readonly ones. */
export const bindArray = (values: readonly (Scalar | null | undefined)[]): Knex.RawBinding =>
  values as Knex.RawBinding;

/** True if every condition is; TRUE without any. */
export const allOf = (conditions: readonly Sql[]): Sql => ({
  sql: conditions.map(({ sql }) => `(${sql})`).join(' AND ') || 'TRUE',
  bindings: conditions.flatMap(({ bindings }) => bindings),
});

/** True if one condition is; FALSE without any. */
export function anyOf(conditions: readonly Sql[]): Sql {
  const [first = { sql: 'FALSE', bindings: [] }, ...more] = conditions;
  if (more.length === 0) return first;
  return {
    sql: `(${conditions.map(({ sql }) => sql).join(' OR ')})`,
    bindings: conditions.flatMap(({ bindings }) => bindings),
  };
}
