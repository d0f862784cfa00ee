import { createHash } from 'node:crypto';
import type { Knex } from './knex.ts';

/** Distinct statements that get a name; each costs a little memory in every connection of the server. */
const MAX_NAMES = 200;
const names = new Map<string, string>();

function nameOf(sql: string): string | undefined {
  const known = names.get(sql);
  if (known !== undefined || names.size >= MAX_NAMES) return known;
  const name = createHash('sha256').update(sql).digest('base64url').slice(0, 20);
  names.set(sql, name);
  return name;
}

/**
 * Runs a statement that is run often as a prepared one: PostgreSQL parses and plans it once a connection. It must
 * name its columns: a `*` would fail in running processes when a migration adds a column.
 */
export function prepared(db: Knex, sql: string, bindings: readonly Knex.RawBinding[]): Knex.Raw {
  const name = nameOf(sql);
  const raw = db.raw(sql, bindings);
  return name === undefined ? raw : raw.options({ name });
}
