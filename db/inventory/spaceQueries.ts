import type { Knex } from '../core/knex.ts';
import { PLATFORM } from '../../domain/access/scope.ts';
import type { DataNeed } from '../../domain/inventory/planSnapshot.ts';
import { spaceName } from './locks.ts';
import { ofKind, select, type NeedOf, type QueryPart, type SharedQuery } from './queryParts.ts';
import { contentsOfPrefix, isOfTenant } from './spaceSql.ts';

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
const USED_ADDRESSES = `
  coalesce((SELECT sum(same.count * power(2::numeric, CASE family(p.cidr) WHEN 4 THEN 32 ELSE 128 END - same.length))
    FROM (SELECT masklen(c.cidr) AS length, count(*) FROM (SELECT cidr FROM prefixes WHERE parent_prefix_id = p.id LIMIT ${MAX_COUNTED}) AS c
      GROUP BY 1) AS same), 0)
  + CASE WHEN CASE family(p.cidr) WHEN 4 THEN 32 ELSE 128 END - masklen(p.cidr) <= 12 THEN
    (SELECT count(DISTINCT host) FROM (${contentsOfPrefix('p', 'ip_addresses', 'host', (a) => `${a}.host BETWEEN host(p.cidr)::inet AND host(broadcast(p.cidr))::inet`)}) AS a
      WHERE NOT ${isInChild('p', 'a.host')}) ELSE 0 END`;

/** SQL: the number of addresses of prefix `p` that are reserved in it, and in no child. */
const RESERVED_ADDRESSES = `
  CASE WHEN family(p.cidr) = 4 AND masklen(p.cidr) < 31 THEN
    (SELECT count(*) FROM unnest(ARRAY[host(p.cidr)::inet, host(broadcast(p.cidr))::inet]) AS edge (host)
      WHERE NOT ${isInChild('p', 'edge.host')}) ELSE 0 END`;

/** SQL: the value of the fact `usage` of a prefix `p`. */
export const USAGE_FACT = `json_build_object('used', (${USED_ADDRESSES})::text, 'reserved', ${RESERVED_ADDRESSES})`;

/** Networks in address spaces that a query asks about. */
type Asked = { vrf: string; tenantId: string };

const spaceBindings = (needs: readonly Asked[]): Knex.RawBinding[] => [
  needs.map(({ vrf }) => vrf),
  needs.map(({ tenantId }) => tenantId),
];

/** SQL: the usage of a prefix `p`, as the fact `usage` has it. */
const USAGE = `SELECT 'fact:usage' AS part, p.id AS key, ${USAGE_FACT} AS row`;

/** A single address contains no prefix. What tenants have around one of the platform is needed anyway. */
const isWide = ({ cidr, tenantId }: NeedOf<'neighbours'>): boolean =>
  tenantId === PLATFORM || !/(?:\..*\/32|\/128)$/.test(cidr);

/**
 * A table with the space of each need, the shared space whose prefixes are parents there as well, and
 * a value of the need in `column`. Most needs are in the same few spaces, which are resolved once.
 */
function inSpaces<N extends Asked>(
  name: string,
  needs: readonly N[],
  [column, type]: readonly [name: string, type: string],
  valueOf: (need: N) => string,
): SharedQuery {
  const spaces = new Map<string, { at: number; need: Asked }>();
  const positions = needs.map((need) => {
    const key = spaceName(need.vrf, need.tenantId);
    const known = spaces.get(key) ?? { at: spaces.size + 1, need };
    spaces.set(key, known);
    return known.at;
  });
  return {
    sql: `${name} AS MATERIALIZED (
      SELECT spaces.own[asked.n] AS space, spaces.shared[asked.n] AS shared, asked.value AS ${column}
      FROM (SELECT array_agg(resolved.space ORDER BY resolved.n) AS own, array_agg(shared_space(resolved.space) ORDER BY resolved.n) AS shared
        FROM (SELECT pair.n, space_of(pair.vrf, pair.tenant) AS space
          FROM unnest(?::text[], ?::text[]) WITH ORDINALITY AS pair (vrf, tenant, n) OFFSET 0) AS resolved) AS spaces,
        unnest(?::integer[], ?::${type}[]) AS asked (n, value))`,
    bindings: [
      ...spaceBindings([...spaces.values()].map(({ need }) => need)),
      positions,
      needs.map(valueOf),
    ],
  };
}

/**
 * SQL: the last prefix of a space up to a network. Comparing both columns together keeps PostgreSQL
 * from reading an index that has the networks of all spaces.
 */
const precedingPrefix = (space: string, network: string) => `
  SELECT p.cidr, p.parent_prefix_id, p.space_key FROM prefixes AS p
  WHERE (p.space_key, p.cidr) <= (${space}, ${network}) AND p.space_key >= ${space}
  ORDER BY p.space_key DESC, p.cidr DESC LIMIT 1`;

/** SQL: the last address of a network. */
const lastOf = (network: string) =>
  `set_masklen(broadcast(${network}), CASE family(${network}) WHEN 4 THEN 32 ELSE 128 END)`;

/**
 * What the function `prefixes_around` of the schema finds, for many networks together. `asked` has the
 * networks; `walk` starts at the prefix that precedes each and follows its parents; `around` has those
 * that contain or equal the network, and `nearest` the smallest that contains it, and equal ones.
 */
const AROUND = [
  `searched AS MATERIALIZED (
    SELECT space, cidr FROM asked UNION ALL SELECT shared, cidr FROM asked WHERE shared <> space)`,
  // Above a parent in another space, it continues with the prefix that precedes the network that spans both.
  `walk (space, network, cidr, parent, found_in, last) AS (
    SELECT s.space, s.cidr, f.cidr, f.parent_prefix_id, f.space_key, f.cidr
      FROM searched AS s CROSS JOIN LATERAL (${precedingPrefix('s.space', 's.cidr')}) AS f
    UNION ALL
    SELECT w.space, w.network, f.cidr, f.parent_prefix_id, f.space_key, CASE WHEN f.space_key = w.space THEN f.cidr ELSE w.last END
      FROM walk AS w CROSS JOIN LATERAL (
        SELECT p.cidr, p.parent_prefix_id, p.space_key FROM prefixes AS p WHERE w.found_in = w.space AND p.id = w.parent
        UNION ALL
        SELECT b.* FROM (SELECT CASE WHEN w.last >>= w.network THEN set_masklen(w.last, masklen(w.last) - 1) ELSE inet_merge(w.last, w.network) END AS bound
          WHERE w.found_in <> w.space OFFSET 0) AS above
          CROSS JOIN LATERAL (${precedingPrefix('w.space', 'above.bound')}) AS b
      ) AS f
      WHERE family(w.cidr) = family(w.network))`,
  `around AS MATERIALIZED (
    SELECT DISTINCT space, cidr FROM walk WHERE found_in = space AND cidr >>= network)`,
  `nearest AS MATERIALIZED (
    SELECT DISTINCT space, set_masklen(network, masklen) AS cidr FROM (
      SELECT space, network, max(masklen(cidr)) AS masklen FROM walk WHERE found_in = space AND cidr >> network GROUP BY space, network
      UNION ALL
      SELECT space, network, masklen(network) FROM walk WHERE found_in = space AND cidr = network) AS found)`,
];

const USAGE_OF_NEAREST: QueryPart = {
  sql: `${USAGE} FROM nearest AS n JOIN prefixes AS p ON p.space_key = n.space AND p.cidr = n.cidr`,
  bindings: [],
};

/** SQL: the prefixes of tenants in the shared table of a space of the platform. */
const ofTenants = (space: string) =>
  `t.vrf_key = split_part(${space}, '/', 1) AND ${isOfTenant('t')}`;

/**
 * The networks that have prefixes inside, and those that prefixes of tenants may contain: most have
 * none, which one lookup shows.
 */
const NOT_EMPTY = [
  `filled AS MATERIALIZED (
    SELECT a.space, a.cidr FROM asked AS a
    WHERE EXISTS (SELECT FROM prefixes AS p WHERE p.space_key = a.space AND p.cidr > a.cidr AND p.cidr <= ${lastOf('a.cidr')})
      OR (a.space = a.shared AND EXISTS (SELECT FROM prefixes AS t WHERE ${ofTenants('a.space')} AND t.cidr > a.cidr AND t.cidr <= ${lastOf('a.cidr')})))`,
  `assigned_before AS MATERIALIZED (
    SELECT a.space, a.cidr FROM asked AS a
    WHERE a.space = a.shared AND EXISTS (SELECT FROM prefixes AS t WHERE ${ofTenants('a.space')} AND t.cidr <= a.cidr))`,
];

const withoutBindings = (sql: string): SharedQuery => ({ sql, bindings: [] });

/**
 * The prefixes that contain or equal each network, the outermost prefixes inside it, and `withUsage`
 * that of its smallest container; see `prefixes_inside` in the migration.
 */
export function neighbourParts(
  needs: readonly NeedOf<'neighbours'>[],
  withUsage: boolean,
): QueryPart[] {
  if (needs.length === 0) return [];
  const asked = inSpaces('asked', needs, ['cidr', 'cidr'], ({ cidr }) => cidr);
  const someWide = needs.some(isWide);
  const parts: QueryPart[] = [
    {
      before: [asked, ...[...AROUND, ...(someWide ? NOT_EMPTY : [])].map(withoutBindings)],
      sql: select('prefixes', 'WHERE (space_key, cidr) IN (SELECT space, cidr FROM around)'),
      bindings: [],
    },
    ...(withUsage ? [USAGE_OF_NEAREST] : []),
  ];
  if (!someWide) return parts;
  return [
    ...parts,
    {
      sql: select(
        'prefixes',
        'WHERE id IN (SELECT prefixes_inside(f.space, f.cidr) FROM filled AS f)',
      ),
      bindings: [],
    },
    // Larger prefixes of tenants around a prefix of the platform, which gets their children.
    {
      sql: select(
        'prefixes',
        `WHERE id IN (SELECT t.id FROM assigned_before AS a JOIN prefixes AS t ON ${ofTenants('a.space')} AND t.cidr = ANY (supernets(a.cidr)))`,
      ),
      bindings: [],
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
          before: [inSpaces('hosts', needs, ['host', 'inet'], ({ host }) => host)],
          sql: select(
            'ip-addresses',
            `WHERE id IN (SELECT a.id FROM hosts JOIN ip_addresses AS a ON a.space_key = hosts.space AND a.host = hosts.host)`,
          ),
          bindings: [],
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
