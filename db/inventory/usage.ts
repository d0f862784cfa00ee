import type { Knex } from '../core/knex.ts';
import { contentsOfPrefix, isShared } from './spaceSql.ts';

/**
 * The size of a prefix and the number of used addresses, exact for both families. `reserved`: the network and
 * the broadcast address, as far as they are reserved and nothing has them (`RESERVED`).
 */
export type Usage = {
  size: bigint;
  used: bigint;
  reserved: bigint;
  children: number;
  addresses: number;
  ranges: number;
};

/** SQL: the block of 256 addresses that an address is in. */
const blockOf = (host: string, bits: string) => `network(set_masklen(${host}, ${bits} - 8))`;

/** SQL: the addresses of a network of the same family as the prefix `p`. */
const firstOf = (network: string) => `set_masklen(${network}::inet, p.bits)`;
const lastOf = (network: string) => `set_masklen(broadcast(${network}), p.bits)`;
const spanOf = (network: string) => `inet_range(${firstOf(network)}, ${lastOf(network)}, '[]')`;

/**
 * SQL: the number of addresses in a span. `inet_number` takes as long as a hundred subtractions, so it
 * is for large spans that are no networks.
 */
const SPANNED = 'inet_merge(lower(span), upper(span))';
const SIZE_OF_SPAN = `
  CASE WHEN p.bits = 32 OR masklen(${SPANNED}) > 65 THEN (upper(span) - lower(span))::numeric + 1
    WHEN ${spanOf(SPANNED)} = span THEN power(2::numeric, p.bits - masklen(${SPANNED}))
    ELSE inet_number(upper(span)) - inet_number(lower(span)) + 1 END`;

/**
 * The blocks of 256 addresses in a prefix that have any, with the number of addresses that
 * `used_blocks` counts. It does not count those with a shared role. `is_exact`: the block has no such
 * addresses, and none of another space, which could be the same.
 */
const BLOCKS = `
  SELECT block, sum(used) AS used, count(*) = 1 AND bool_and(is_counted) AS is_exact
  FROM (
    SELECT block, used, true AS is_counted FROM (${contentsOfPrefix(
      'p',
      'used_blocks',
      'block, used',
      (u) => `p.has_blocks AND ${u}.block BETWEEN p.cidr AND p.last::cidr`,
    )}) AS counted WHERE masklen(block) = p.bits - 8
    UNION ALL SELECT ${blockOf('host', 'p.bits')}, 0, false FROM (${contentsOfPrefix(
      'p',
      'ip_addresses',
      'host',
      (a) => `p.has_blocks AND ${a}.shared <> 0 AND ${a}.host BETWEEN p.first AND p.last`,
    )}) AS with_roles
  ) AS each GROUP BY block`;

/**
 * The network and the broadcast address of an IPv4 prefix shorter than /31, which no address can be, but a
 * child prefix or a range can have. A container is for child prefixes.
 */
const RESERVED = `
  SELECT count(*) AS count FROM unnest(ARRAY[p.first, p.last]) AS edge (host)
  WHERE p.has_reserved AND NOT edge.host <@ merged.spans
    AND NOT EXISTS (${contentsOfPrefix('p', 'ip_addresses', 'host', (a) => `${a}.host = edge.host`)})`;

/**
 * An address is used when it is in a child prefix, in a range, or a record of its own; it counts
 * once. `taken` merges what children and ranges use, together with what the platform has inside the
 * prefix of a tenant. `counted` adds up the blocks that are outside of it or inside as a whole,
 * `found` counts the addresses of the others. Without blocks the whole prefix is read: it is small,
 * or its VRF may have an address several times.
 */
const USAGE = `
  SELECT p.id, power(2::numeric, p.bits - masklen(p.cidr))::text AS size,
    (coalesce(taken.count, 0) + counted.outside + found.outside)::text AS used, reserved.count AS reserved, c.count AS children,
    counted.total + found.total AS addresses, r.count AS ranges
  FROM (
    SELECT id, vrf_key, space_key, cidr, bits, host(cidr)::inet AS first, host(broadcast(cidr))::inet AS last,
      unique_in_vrf AND masklen(cidr) <= bits - 8 AS has_blocks,
      bits = 32 AND masklen(cidr) < 31 AND status <> 'container' AS has_reserved
    FROM prefixes CROSS JOIN LATERAL (SELECT CASE family(cidr) WHEN 4 THEN 32 ELSE 128 END AS bits) AS length
    WHERE id = ANY (?::text[])
  ) AS p
  CROSS JOIN LATERAL (
    SELECT count(DISTINCT cidr) AS count, range_agg(${spanOf('cidr')}) AS spans
    FROM prefixes WHERE parent_prefix_id = p.id
  ) AS c
  CROSS JOIN LATERAL (
    SELECT count(*) AS count, range_agg(span * inet_range(p.first, p.last, '[]')) AS spans
    FROM (${contentsOfPrefix('p', 'ip_ranges', 'span', (r) => `${r}.span && inet_range(p.first, p.last, '[]')`)}) AS ranges
  ) AS r
  CROSS JOIN LATERAL (
    SELECT range_agg(${spanOf('cidr')}) AS spans FROM prefixes
    WHERE NOT (${isShared('p')}) AND space_key = shared_space(p.space_key) AND cidr > p.cidr AND cidr <= p.last
  ) AS shared
  CROSS JOIN LATERAL (
    -- With OFFSET, it is merged once, not for each block.
    SELECT coalesce(c.spans, '{}') + coalesce(r.spans, '{}') + coalesce(shared.spans, '{}') AS spans OFFSET 0
  ) AS merged
  CROSS JOIN LATERAL (${RESERVED}) AS reserved
  CROSS JOIN LATERAL (
    SELECT sum(${SIZE_OF_SPAN}) AS count FROM unnest(merged.spans) AS span
  ) AS taken
  CROSS JOIN LATERAL (
    SELECT coalesce(sum(used) FILTER (WHERE is_exact AND (is_inside OR NOT is_touched)), 0) AS total,
      coalesce(sum(used) FILTER (WHERE is_exact AND NOT is_touched), 0) AS outside,
      CASE WHEN p.has_blocks THEN array_agg(block) FILTER (WHERE NOT is_exact OR (is_touched AND NOT is_inside))
        ELSE ARRAY[p.cidr] END AS others
    FROM (
      SELECT block, used, is_exact, merged.spans @> ${spanOf('block')} AS is_inside, merged.spans && ${spanOf('block')} AS is_touched
      FROM (${BLOCKS}) AS blocks
    ) AS blocks
  ) AS counted
  CROSS JOIN LATERAL (
    SELECT coalesce(sum(each.total), 0) AS total, coalesce(sum(each.outside), 0) AS outside
    FROM unnest(counted.others) AS network CROSS JOIN LATERAL (
      SELECT count(DISTINCT host) AS total, count(DISTINCT host) FILTER (WHERE NOT host <@ merged.spans) AS outside
      FROM (${contentsOfPrefix(
        'p',
        'ip_addresses',
        'host',
        (a) => `${a}.host BETWEEN ${firstOf('network')} AND ${lastOf('network')}`,
      )}) AS addresses
    ) AS each
  ) AS found`;

/** Reads the usage of prefixes by their ids. */
export async function readUsage(db: Knex, ids: readonly string[]): Promise<Map<string, Usage>> {
  const { rows } = await db.raw<{
    rows: {
      id: string;
      size: string;
      used: string;
      reserved: string;
      children: string;
      addresses: string;
      ranges: string;
    }[];
  }>(USAGE, [[...ids]]);
  const whole = (text: string) => BigInt(text.split('.')[0] ?? '0');
  return new Map(
    rows.map((row) => [
      row.id,
      {
        size: whole(row.size),
        used: whole(row.used),
        reserved: BigInt(row.reserved),
        children: Number(row.children),
        addresses: Number(row.addresses),
        ranges: Number(row.ranges),
      },
    ]),
  );
}
