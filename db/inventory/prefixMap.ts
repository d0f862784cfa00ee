import type { Scope } from '../../domain/access/scope.ts';
import { formatBlock, type Block } from '../../domain/inventory/cidr.ts';
import { RESOURCES } from '../../domain/inventory/resources/index.ts';
import type { Knex } from '../core/knex.ts';
import { scopeCondition } from '../core/scopeSql.ts';
import { besideOf, contentsKey, findPosition } from './freeSpace.ts';
import { scopeColumnsOf, withinNetwork } from './tables.ts';

/** A prefix in another. Its id and status are null outside the scope. */
export type InsidePrefix = { cidr: string; id: string | null; status: string | null };

type Stored = { id: string; cidr: string; status: string };

/**
 * Lists up to `limit` prefixes of all levels in a network of a prefix: those that count in it, also
 * outside the scope, since their addresses are not free. The largest come first, then by network.
 */
export async function listPrefixesInside(
  db: Knex,
  scope: Scope,
  prefixId: string,
  network: Block,
  limit: number,
): Promise<InsidePrefix[]> {
  const position = await findPosition(db, prefixId);
  if (!position) return [];
  const [column, key] = contentsKey(position);
  const inside = withinNetwork('cidr', formatBlock(network));
  const readable = scopeCondition(scope, scopeColumnsOf(RESOURCES.prefixes) ?? undefined);
  const part = (of: string) =>
    `SELECT * FROM prefixes WHERE ${of} = ? AND id <> ? AND ${inside.sql}`;
  const { rows } = await db.raw<{ rows: (Stored & { readable: boolean | null })[] }>(
    `SELECT id, cidr::text, status, (${readable.sql}) AS readable
      FROM (${part(column)} UNION ALL ${part('space_key')}) AS inside
      ORDER BY masklen(inside.cidr), inside.cidr, id LIMIT ?`,
    [
      ...readable.bindings,
      ...[key, prefixId, ...inside.bindings],
      ...[besideOf(position), prefixId, ...inside.bindings],
      limit,
    ],
  );
  return rows.map(({ id, cidr, status, readable: isReadable }) =>
    isReadable === true ? { cidr, id, status } : { cidr, id: null, status: null },
  );
}
