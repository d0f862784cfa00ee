import { createHash } from 'node:crypto';
import type { Knex } from './knex.ts';

/** Most statements that get a name. Each uses memory in every connection of the server. */
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
 * Runs a frequent statement as a prepared one, which PostgreSQL parses once per connection. The
 * statement must name its columns: `*` fails in running processes when a migration adds a column.
 */
export function prepared(db: Knex, sql: string, bindings: readonly Knex.RawBinding[]): Knex.Raw {
  const name = nameOf(sql);
  const raw = db.raw(sql, bindings);
  return name === undefined ? raw : raw.options({ name });
}
