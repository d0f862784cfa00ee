import type { Knex } from '../core/knex.ts';
import type { DataNeed } from '../../domain/inventory/planSnapshot.ts';
import { ofKind, select, type NeedOf, type QueryPart } from './queryParts.ts';
import { contentsOfPrefix } from './spaceSql.ts';

/**
 * SQL: whether a child of a prefix contains an address. Children of one tenant do not overlap, so
 * only the last one that starts at or before the address can.
 */
const isInChild = (
  prefix: string,
  host: string,
) => `coalesce((SELECT c.cidr >>= ${host} FROM prefixes AS c
  WHERE c.parent_prefix_id = ${prefix}.id AND c.cidr <= ${host} ORDER BY c.parent_prefix_id DESC, c.cidr DESC, c.id DESC LIMIT 1), false)`;

/** The number of children that are counted for the usage of a prefix. */
const MAX_COUNTED = 4_096;
/**
 * SQL: the number of addresses of prefix `p` that children use and, up to 4,096 addresses, that
 * single addresses use. It decides a warning only; `usage.ts` has the exact number.
 */
export const USED_ADDRESSES = `
  coalesce((SELECT sum(power(2::numeric, CASE family(c.cidr) WHEN 4 THEN 32 ELSE 128 END - masklen(c.cidr)))
    FROM (SELECT cidr FROM prefixes WHERE parent_prefix_id = p.id LIMIT ${MAX_COUNTED}) AS c), 0)
  + CASE WHEN CASE family(p.cidr) WHEN 4 THEN 32 ELSE 128 END - masklen(p.cidr) <= 12 THEN
    (SELECT count(DISTINCT host) FROM (${contentsOfPrefix('p', 'ip_addresses', 'host', (a) => `${a}.host BETWEEN host(p.cidr)::inet AND host(broadcast(p.cidr))::inet`)}) AS a
      WHERE NOT ${isInChild('p', 'a.host')}) ELSE 0 END`;

/** Networks in address spaces that a query asks about. */
type Asked = { vrf: string; tenantId: string };

const spaceBindings = (needs: readonly Asked[]): Knex.RawBinding[] => [
  needs.map(({ vrf }) => vrf),
  needs.map(({ tenantId }) => tenantId),
];

/**
 * The prefixes that contain or equal each network, the outermost prefixes inside it, and the usage
 * of its smallest container; see `prefixes_around` and `prefixes_inside` in the migration.
 */
export function neighbourParts(needs: readonly NeedOf<'neighbours'>[]): QueryPart[] {
  if (needs.length === 0) return [];
  const own = `SELECT space_of(asked.vrf, asked.tenant) AS space, asked.cidr
    FROM unnest(?::text[], ?::text[], ?::cidr[]) AS asked (vrf, tenant, cidr)`;
  const asked = `(SELECT o.space, o.cidr FROM (${own}) AS o
    UNION SELECT shared_space(o.space), o.cidr FROM (${own}) AS o WHERE o.space <> shared_space(o.space))`;
  const bindings = (some: readonly NeedOf<'neighbours'>[]) => [
    ...spaceBindings(some),
    some.map(({ cidr }) => cidr),
  ];
  const twice = [...bindings(needs), ...bindings(needs)];
  // A single address contains no prefix.
  const wide = needs.filter(({ cidr }) => !/(?:\..*\/32|\/128)$/.test(cidr));
  const parts: QueryPart[] = [
    {
      sql: select(
        'prefixes',
        `WHERE (space_key, cidr) IN (SELECT asked.space, around.cidr FROM ${asked} AS asked
          CROSS JOIN LATERAL prefixes_around(asked.space, asked.cidr) AS around (cidr))`,
      ),
      bindings: twice,
    },
    {
      sql: `SELECT 'fact:usage' AS part, p.id AS key, json_build_object('used', (${USED_ADDRESSES})::text) AS row FROM (
        SELECT DISTINCT asked.space, around.cidr FROM ${asked} AS asked CROSS JOIN LATERAL (
          (SELECT c FROM prefixes_around(asked.space, asked.cidr) AS c WHERE c <> asked.cidr LIMIT 1) UNION ALL SELECT asked.cidr
        ) AS around (cidr)
      ) AS near JOIN prefixes AS p ON p.space_key = near.space AND p.cidr = near.cidr`,
      bindings: twice,
    },
  ];
  if (wide.length === 0) return parts;
  return [
    ...parts,
    {
      sql: select(
        'prefixes',
        `WHERE id IN (SELECT prefixes_inside(asked.space, asked.cidr) FROM (${own}) AS asked)`,
      ),
      bindings: bindings(wide),
    },
    // Larger prefixes of tenants around a prefix of the platform, which gets their children.
    {
      sql: select(
        'prefixes',
        `WHERE id IN (SELECT p.id FROM (${own}) AS asked JOIN prefixes AS p
          ON asked.space = shared_space(asked.space) AND p.cidr = ANY (supernets(asked.cidr)) AND p.vrf_key = split_part(asked.space, '/', 1))`,
      ),
      bindings: bindings(wide),
    },
  ];
}

/** The prefixes of all tenants around networks, and the children of prefixes that overlap a network. */
export function tenantParts(needs: readonly DataNeed[]): QueryPart[] {
  const around = ofKind(needs, 'allAround');
  const assigned = ofKind(needs, 'assigned');
  const parts: QueryPart[] = [];
  if (around.length > 0)
    parts.push({
      sql: select(
        'prefixes',
        `WHERE id IN (SELECT p.id FROM unnest(?::text[], ?::cidr[]) AS asked (vrf, cidr)
          JOIN prefixes AS p ON p.cidr = ANY (supernets(asked.cidr)) AND p.vrf_key = asked.vrf)`,
      ),
      bindings: [around.map(({ vrf }) => vrf), around.map(({ cidr }) => cidr)],
    });
  if (assigned.length > 0)
    parts.push({
      sql: select(
        'prefixes',
        `WHERE id IN (SELECT p.id FROM unnest(?::text[], ?::cidr[]) AS asked (parent, cidr)
            JOIN prefixes AS p ON p.parent_prefix_id = asked.parent AND p.cidr = ANY (supernets(asked.cidr))
          UNION SELECT p.id FROM unnest(?::text[], ?::cidr[]) AS asked (parent, cidr)
            JOIN prefixes AS p ON p.parent_prefix_id = asked.parent AND p.cidr > asked.cidr
              AND p.cidr <= set_masklen(broadcast(asked.cidr), CASE family(asked.cidr) WHEN 4 THEN 32 ELSE 128 END))`,
      ),
      bindings: [0, 1].flatMap(() => [
        assigned.map(({ prefixId }) => prefixId),
        assigned.map(({ cidr }) => cidr),
      ]),
    });
  return parts;
}

/** The addresses of a space with a host. */
export const addressParts = (needs: readonly NeedOf<'addresses'>[]): QueryPart[] =>
  needs.length === 0
    ? []
    : [
        {
          sql: select(
            'ip-addresses',
            `WHERE id IN (SELECT a.id FROM unnest(?::text[], ?::text[], ?::inet[]) AS asked (vrf, tenant, host)
              JOIN ip_addresses AS a ON a.space_key = space_of(asked.vrf, asked.tenant) AND a.host = asked.host)`,
          ),
          bindings: [...spaceBindings(needs), needs.map(({ host }) => host)],
        },
      ];

/** The ranges that overlap each interval of addresses, and the prefixes of the platform in it. */
export function rangeParts(
  ranges: readonly NeedOf<'ranges'>[],
  shared: readonly NeedOf<'sharedInside'>[],
): QueryPart[] {
  const intervals = (some: readonly { first: string; last: string }[]) => [
    some.map(({ first }) => first),
    some.map(({ last }) => last),
  ];
  const parts: QueryPart[] = [];
  if (ranges.length > 0)
    parts.push({
      sql: select(
        'ip-ranges',
        `WHERE id IN (SELECT r.id FROM unnest(?::text[], ?::text[], ?::inet[], ?::inet[]) AS asked (vrf, tenant, first, last)
          JOIN ip_ranges AS r ON r.space_key = space_of(asked.vrf, asked.tenant) AND r.span && inet_range(asked.first, asked.last, '[]'))`,
      ),
      bindings: [...spaceBindings(ranges), ...intervals(ranges)],
    });
  if (shared.length > 0)
    parts.push({
      sql: select(
        'prefixes',
        // A network sorts before its first address: those that start at the first one are found by name.
        `WHERE id IN (SELECT p.id FROM unnest(?::text[], ?::inet[]) AS asked (vrf, first)
            JOIN prefixes AS p ON p.space_key = asked.vrf || '/platform' AND p.cidr = ANY (supernets(asked.first)) AND host(p.cidr)::inet = asked.first
          UNION SELECT p.id FROM unnest(?::text[], ?::inet[], ?::inet[]) AS asked (vrf, first, last)
            JOIN prefixes AS p ON p.space_key = asked.vrf || '/platform' AND p.cidr > asked.first AND p.cidr <= asked.last)`,
      ),
      bindings: [
        ...[shared.map(({ vrf }) => vrf), shared.map(({ first }) => first)],
        ...[shared.map(({ vrf }) => vrf), ...intervals(shared)],
      ],
    });
  return parts;
}
