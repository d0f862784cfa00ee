import type { Knex } from '../core/knex.ts';
import { contentsOfPrefix, isShared } from './spaceSql.ts';

/** The size of a prefix and the number of used addresses, exact for both families. */
export type Usage = {
  size: bigint;
  used: bigint;
  children: number;
  addresses: number;
  ranges: number;
};

/**
 * An address is used when it is in a child prefix, in a range, or a record of its own; it counts
 * once. `taken` merges what children and ranges use, together with what the platform has inside the
 * prefix of a tenant; `a` counts the address records outside.
 */
const USAGE = `
  SELECT p.id, power(2::numeric, p.bits - masklen(p.cidr))::text AS size,
    (coalesce(taken.count, 0) + a.outside)::text AS used, c.count AS children, a.count AS addresses, r.count AS ranges
  FROM (
    SELECT id, vrf_key, space_key, cidr, CASE family(cidr) WHEN 4 THEN 32 ELSE 128 END AS bits, host(cidr)::inet AS first, host(broadcast(cidr))::inet AS last
    FROM prefixes WHERE id = ANY (?::text[])
  ) AS p
  CROSS JOIN LATERAL (
    SELECT count(DISTINCT cidr) AS count, range_agg(inet_range(host(cidr)::inet, host(broadcast(cidr))::inet, '[]')) AS spans
    FROM prefixes WHERE parent_prefix_id = p.id
  ) AS c
  CROSS JOIN LATERAL (
    SELECT count(*) AS count, range_agg(span * inet_range(p.first, p.last, '[]')) AS spans
    FROM (${contentsOfPrefix('p', 'ip_ranges', 'span', (r) => `${r}.span && inet_range(p.first, p.last, '[]')`)}) AS ranges
  ) AS r
  CROSS JOIN LATERAL (
    SELECT range_agg(inet_range(host(cidr)::inet, host(broadcast(cidr))::inet, '[]')) AS spans FROM prefixes
    WHERE NOT (${isShared('p')}) AND space_key = shared_space(p.space_key) AND cidr > p.cidr AND cidr <= p.last
  ) AS shared
  CROSS JOIN LATERAL (
    SELECT coalesce(c.spans, '{}') + coalesce(r.spans, '{}') + coalesce(shared.spans, '{}') AS spans
  ) AS merged
  CROSS JOIN LATERAL (
    SELECT sum(inet_number(upper(span)) - inet_number(lower(span)) + 1) AS count FROM unnest(merged.spans) AS span
  ) AS taken
  CROSS JOIN LATERAL (
    SELECT count(DISTINCT host) AS count, count(DISTINCT host) FILTER (WHERE NOT host <@ merged.spans) AS outside
    FROM (${contentsOfPrefix('p', 'ip_addresses', 'host', (a) => `${a}.host BETWEEN p.first AND p.last`)}) AS addresses
  ) AS a`;

/** Reads the usage of prefixes by their ids. */
export async function readUsage(db: Knex, ids: readonly string[]): Promise<Map<string, Usage>> {
  const { rows } = await db.raw<{
    rows: {
      id: string;
      size: string;
      used: string;
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
        children: Number(row.children),
        addresses: Number(row.addresses),
        ranges: Number(row.ranges),
      },
    ]),
  );
}
