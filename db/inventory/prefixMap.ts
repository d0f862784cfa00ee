import type { Scope } from '../../domain/access/scope.ts';
import { formatBlock, formatHost, type Block } from '../../domain/inventory/cidr.ts';
import type { ResourceName } from '../../domain/inventory/names.ts';
import { RESOURCES } from '../../domain/inventory/resources/index.ts';
import type { Knex } from '../core/knex.ts';
import { scopeCondition } from '../core/scopeSql.ts';
import { contentsKey, findPosition } from './freeSpace.ts';
import { isOfTenant } from './spaceSql.ts';
import { canonicalText, scopeColumnsOf, withinNetwork } from './tables.ts';

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
  const { vrf, space, shared } = position;
  const inside = withinNetwork('cidr', formatBlock(network));
  const readable = scopeCondition(scope, scopeColumnsOf(RESOURCES.prefixes) ?? undefined);
  const part = (of: string) => `SELECT * FROM prefixes WHERE ${of} AND id <> ? AND ${inside.sql}`;
  // Each has an index by network.
  const [others, othersKey] =
    space === shared
      ? [`vrf_key = ? AND ${isOfTenant('prefixes')}`, vrf]
      : ['space_key = ?', shared];
  const { rows } = await db.raw<{ rows: (Stored & { readable: boolean | null })[] }>(
    `SELECT id, cidr::text, status, (${readable.sql}) AS readable
      FROM (${part('space_key = ?')} UNION ALL ${part(others)}) AS inside
      ORDER BY masklen(inside.cidr), inside.cidr, id LIMIT ?`,
    [
      ...readable.bindings,
      ...[space, prefixId, ...inside.bindings],
      ...[othersKey, prefixId, ...inside.bindings],
      limit,
    ],
  );
  return rows.map(({ id, cidr: text, status, readable: isReadable }) => {
    const cidr = canonicalText(RESOURCES.prefixes, 'cidr', text);
    return isReadable === true ? { cidr, id, status } : { cidr, id: null, status: null };
  });
}

/** An address in a prefix. All but the address is null outside the scope. */
export type InsideAddress = {
  address: string;
  id: string | null;
  status: string | null;
  dnsName: string | null;
  interfaceId: string | null;
  deviceId: string | null;
};

/** A range in a prefix, or one that begins before it or ends after it. */
export type InsideRange = { start: string; end: string; id: string | null; status: string | null };

/**
 * Lists up to `limit` addresses and as many ranges in a network of a prefix, by address: those that count
 * in it, also outside the scope, since they are not free.
 */
export async function listContents(
  db: Knex,
  scope: Scope,
  prefixId: string,
  { family, first, last }: Block,
  limit: number,
): Promise<{ addresses: InsideAddress[]; ranges: InsideRange[] }> {
  const position = await findPosition(db, prefixId);
  if (!position) return { addresses: [], ranges: [] };
  const [column, key] = contentsKey(position);
  const ends = [formatHost(family, first), formatHost(family, last)];
  const readable = (name: ResourceName) =>
    scopeCondition(scope, scopeColumnsOf(RESOURCES[name]) ?? undefined);
  const [ofAddress, ofRange] = [readable('ip-addresses'), readable('ip-ranges')];
  const [addresses, ranges] = await Promise.all([
    db.raw<{ rows: InsideAddress[] }>(
      `SELECT host(host) AS address, CASE WHEN is_readable THEN id END AS id,
          CASE WHEN is_readable THEN status END AS status, CASE WHEN is_readable THEN dns_name END AS "dnsName",
          CASE WHEN is_readable THEN interface_id END AS "interfaceId",
          CASE WHEN is_readable THEN device_id END AS "deviceId"
        FROM (SELECT *, (${ofAddress.sql}) AS is_readable FROM ip_addresses
              WHERE ${column} = ? AND host BETWEEN ?::inet AND ?::inet
              ORDER BY ${column}, ip_addresses.host, id LIMIT ?) AS inside
        ORDER BY inside.host, id`,
      [...ofAddress.bindings, key, ...ends, limit],
    ),
    db.raw<{ rows: InsideRange[] }>(
      `SELECT host(start_address) AS start, host(end_address) AS "end", CASE WHEN is_readable THEN id END AS id,
          CASE WHEN is_readable THEN status END AS status
        FROM (SELECT *, (${ofRange.sql}) AS is_readable FROM ip_ranges
              WHERE ${column} = ? AND span && inet_range(?::inet, ?::inet, '[]') LIMIT ?) AS inside
        ORDER BY inside.start_address, inside.id`,
      [...ofRange.bindings, key, ...ends, limit],
    ),
  ]);
  const canonical = (text: string) => canonicalText(RESOURCES['ip-addresses'], 'address', text);
  return {
    addresses: addresses.rows.map((row) => ({ ...row, address: canonical(row.address) })),
    ranges: ranges.rows.map((row) => ({
      ...row,
      start: canonical(row.start),
      end: canonical(row.end),
    })),
  };
}
