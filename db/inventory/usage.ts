import type { Knex } from '../core/knex.ts';

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
 * once. The steps: `c` counts the addresses of the children, `r` those of the ranges after merging
 * overlapping ranges into islands, `both_of` those in islands and in children, and `a` the address
 * records outside both. used = c + r - both_of + a.
 */
const USAGE = `
  SELECT p.id, power(2::numeric, p.bits - masklen(p.cidr))::text AS size,
    (c.taken + r.taken - coalesce(both_of.taken, 0) + a.outside)::text AS used, c.count AS children, a.count AS addresses, r.count AS ranges
  FROM (
    SELECT id, vrf_key, cidr, CASE family(cidr) WHEN 4 THEN 32 ELSE 128 END AS bits, host(cidr)::inet AS first, host(broadcast(cidr))::inet AS last
    FROM prefixes WHERE id = ANY (?::text[])
  ) AS p
  CROSS JOIN LATERAL (
    SELECT count(*) AS count, coalesce(sum(power(2::numeric, p.bits - masklen(child.cidr))), 0) AS taken
    FROM (SELECT DISTINCT cidr FROM prefixes WHERE vrf_key = p.vrf_key AND parent_prefix_id = p.id) AS child
  ) AS c
  CROSS JOIN LATERAL (
    SELECT coalesce(array_agg(inet_range(island.first, island.last, '[]')), '{}') AS islands, coalesce(sum(island.count), 0) AS count,
      coalesce(sum(inet_number(island.last) - inet_number(island.first) + 1), 0) AS taken
    FROM (
      SELECT min(first) AS first, max(last) AS last, count(*) AS count FROM (
        SELECT *, count(*) FILTER (WHERE begins) OVER (ORDER BY first, last, id) AS number FROM (
          SELECT *, first > coalesce(max(last) OVER (ORDER BY first, last, id ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING), '0.0.0.0') AS begins FROM (
            SELECT id, greatest(start_address, p.first) AS first, least(end_address, p.last) AS last
            FROM ip_ranges WHERE vrf_key = p.vrf_key AND span && inet_range(p.first, p.last, '[]')
          ) AS clipped
        ) AS marked
      ) AS numbered GROUP BY number
    ) AS island
  ) AS r
  CROSS JOIN LATERAL (
    SELECT sum(inet_number(least(upper_end.last, child.last)) - inet_number(greatest(upper_end.first, child.first)) + 1) AS taken
    FROM (SELECT lower(span) AS first, upper(span) AS last FROM unnest(r.islands) AS span) AS upper_end
    JOIN (SELECT DISTINCT cidr, host(cidr)::inet AS first, host(broadcast(cidr))::inet AS last FROM prefixes
          WHERE vrf_key = p.vrf_key AND parent_prefix_id = p.id AND r.count > 0) AS child ON child.first <= upper_end.last AND child.last >= upper_end.first
  ) AS both_of
  CROSS JOIN LATERAL (
    SELECT count(DISTINCT host) AS count,
      count(DISTINCT host) FILTER (WHERE (c.count = 0 OR NOT coalesce((SELECT child.cidr >>= a.host FROM prefixes AS child
          WHERE child.vrf_key = p.vrf_key AND child.parent_prefix_id = p.id AND child.cidr <= a.host ORDER BY child.vrf_key DESC, child.parent_prefix_id DESC, child.cidr DESC LIMIT 1), false))
        AND (r.count = 0 OR NOT a.host <@ ANY (r.islands))) AS outside
    FROM ip_addresses AS a WHERE a.vrf_key = p.vrf_key AND a.host BETWEEN p.first AND p.last
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
