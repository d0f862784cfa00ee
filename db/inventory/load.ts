import type { Knex } from '../core/knex.ts';
import { prepared } from '../core/prepared.ts';
import { RESOURCES } from '../../domain/inventory/resources/index.ts';
import { RESOURCE_NAMES, type ResourceName } from '../../domain/inventory/names.ts';
import { labelOf } from '../../domain/inventory/ownership.ts';
import {
  MAX_NAMED_SITES,
  type FactName,
  type DataNeed,
  type Referrer,
  type PlanSnapshot,
} from '../../domain/inventory/planSnapshot.ts';
import { assertDefined } from '../../domain/shared/assert.ts';
import { AppError } from '../../domain/shared/errors.ts';
import { contentsOfPrefix } from './spaceSql.ts';
import { columnOf, columnsOf, rowOf, siteColumnsOf, sqlTypeOf, tableOf } from './tables.ts';

/** The number of rows that one round may load. */
const MAX_ROWS = 50_000;
/** Statements with more parts are rarely repeated, so they are not prepared. */
const MAX_PREPARED_PARTS = 8;
/** Rows that are added to a snapshot before other work gets a turn. */
const ROWS_PER_TURN = 500;

/** One part of a union. Its columns are `part`, `key` and `row`, see `FoundRow`. */
type QueryPart = { sql: string; bindings: Knex.RawBinding[] };
/**
 * `part` is a resource, `fact:usage` with the id of a prefix as `key`, or `fact` with the position of
 * the need.
 */
type FoundRow = { part: string; key: string | null; row: Record<string, unknown> };

/**
 * Row locks for a plan that will be written: FOR UPDATE on `targets` (`<resource>/<id>`), FOR SHARE
 * on all other rows that are loaded by id. Null for a plan that is not written.
 */
export type Locking = { targets: ReadonlySet<string> } | null;

type NeedOf<K extends DataNeed['kind']> = Extract<DataNeed, { kind: K }>;
const ofKind = <K extends DataNeed['kind']>(needs: readonly DataNeed[], kind: K): NeedOf<K>[] =>
  needs.filter((need): need is NeedOf<K> => need.kind === kind);

type Group<T> = [T, ...T[]];

const grouped = <T>(items: readonly T[], keyOf: (item: T) => string): Group<T>[] =>
  [...Map.groupBy(items, keyOf).values()] as Group<T>[];

/**
 * Loads the needs of a plan into its snapshot, in one statement. `pause` lets other work run. Returns
 * the number of rows. Error: `limit_reached`.
 */
export async function loadNeeds(
  db: Knex,
  snapshot: PlanSnapshot,
  needs: readonly DataNeed[],
  { locking, pause }: { locking: Locking; pause(): Promise<void> },
): Promise<number> {
  const parts = [
    ...rowParts(ofKind(needs, 'row'), locking),
    ...lookupParts(ofKind(needs, 'rows')),
    ...neighbourParts(ofKind(needs, 'neighbours')),
    ...tenantParts(needs),
    ...addressParts(ofKind(needs, 'addresses')),
    ...rangeParts(ofKind(needs, 'ranges'), ofKind(needs, 'sharedInside')),
    ...factParts(needs),
  ];
  const found: FoundRow[] = [];
  if (parts.length > 0) {
    const text = parts.map(({ sql }) => `(${sql})`).join(' UNION ALL ');
    const sql = `${text} LIMIT ${MAX_ROWS + 1}`;
    const bindings = parts.flatMap((part) => part.bindings);
    const { rows } = (await (parts.length <= MAX_PREPARED_PARTS
      ? prepared(db, sql, bindings)
      : db.raw(sql, bindings))) as { rows: FoundRow[] };
    found.push(...rows);
  }
  if (found.length > MAX_ROWS)
    throw new AppError(
      'limit_reached',
      `The change affects more than ${MAX_ROWS} records. Split it into smaller changes.`,
    );
  await addToSnapshot(snapshot, needs, found, pause);
  return found.length;
}

async function addToSnapshot(
  snapshot: PlanSnapshot,
  needs: readonly DataNeed[],
  found: readonly FoundRow[],
  pause: () => Promise<void>,
): Promise<void> {
  const isFact = ({ part }: FoundRow) => part.startsWith('fact');
  const facts = Map.groupBy(found.filter(isFact), ({ part, key }) => `${part}|${key ?? ''}`);
  for (const [i, need] of needs.entries()) {
    if (need.kind === 'fact') {
      const key = need.name === 'usage' ? `fact:usage|${need.id}` : `fact|${i}`;
      snapshot.markLoaded(need, factOf(need.name, facts.get(key) ?? []));
    } else snapshot.markLoaded(need);
  }
  // The neighbours of a network come with the usage of its smallest container.
  for (const row of found.filter(({ part }) => part === 'fact:usage')) {
    const need = { kind: 'fact', name: 'usage', id: String(row.key) } as const;
    snapshot.markLoaded(need, factOf('usage', [row]));
  }
  const rows = found.filter((each) => !isFact(each));
  for (let start = 0; start < rows.length; start += ROWS_PER_TURN) {
    snapshot.addLoadedRows(
      rows.slice(start, start + ROWS_PER_TURN).map(({ part, row }) => {
        const resource = part as ResourceName;
        return { resource, row: rowOf(RESOURCES[resource], row) };
      }),
    );
    await pause();
  }
}

/** Converts the rows of a fact to its value. A prefix without rows uses no addresses. */
function factOf(name: FactName, found: readonly FoundRow[]): unknown {
  if (name === 'usage')
    return BigInt((found[0]?.row.used as string | undefined)?.split('.')[0] ?? 0);
  if (name.endsWith('Ancestors')) return true;
  return found.map(({ row }): Referrer => {
    const { resource, record, id, label } = row as {
      resource: string;
      record?: Record<string, unknown>;
      id?: string;
      label?: string;
    };
    if (!record) return { resource, id: String(id), label: String(label ?? id) };
    const declared = RESOURCES[resource as ResourceName];
    const full = rowOf(declared, record);
    return { resource, id: full.id, label: labelOf(declared, full), row: full };
  });
}

const select = (name: ResourceName, where: string): string => {
  const resource = RESOURCES[name];
  return `SELECT '${name}' AS part, NULL AS key, to_json(x) AS row FROM (SELECT ${columnsOf(resource)} FROM ${tableOf(resource)} ${where}) AS x`;
};

/** Rows are locked in this order in every transaction, which prevents deadlocks. */
const LOCK_ORDER: readonly ResourceName[] = RESOURCE_NAMES;

/** Rows by id. A union cannot lock, so each kind of lock has its own part. */
function rowParts(needs: readonly NeedOf<'row'>[], locking: Locking): QueryPart[] {
  const groups = grouped(needs, ({ resource }) => resource).sort(
    ([a], [b]) => LOCK_ORDER.indexOf(a.resource) - LOCK_ORDER.indexOf(b.resource),
  );
  return groups.flatMap((group) => {
    const name = group[0].resource;
    const ids = group.map(({ id }) => id);
    const sites = sitesOfParts(name, ids);
    if (!locking)
      return [{ sql: select(name, 'WHERE id = ANY (?::text[])'), bindings: [ids] }, ...sites];
    const rows = [false, true].flatMap((isTarget): QueryPart[] => {
      const locked = ids.filter((id) => locking.targets.has(`${name}/${id}`) === isTarget);
      const lock = isTarget ? 'UPDATE' : 'SHARE';
      const where = `WHERE id = ANY (?::text[]) ORDER BY id FOR ${lock}`;
      return locked.length === 0 ? [] : [{ sql: select(name, where), bindings: [locked] }];
    });
    return [...rows, ...sites];
  });
}

/**
 * The sites that records belong to: whether a right at a site counts depends on its tenant. They are
 * not locked.
 */
function sitesOfParts(name: ResourceName, ids: readonly string[]): QueryPart[] {
  const columns = name === 'sites' ? [] : siteColumnsOf(RESOURCES[name]);
  if (columns.length === 0) return [];
  const where = `WHERE id IN (SELECT unnest(ARRAY[${columns.join(', ')}]) FROM ${tableOf(RESOURCES[name])} WHERE id = ANY (?::text[]))`;
  return [{ sql: select('sites', where), bindings: [[...ids]] }];
}

/** Rows by the values of fields. */
function lookupParts(needs: readonly NeedOf<'rows'>[]): QueryPart[] {
  const sameShape = ({ resource, fields, limit }: NeedOf<'rows'>) =>
    [resource, limit, ...fields].join('|');
  return grouped(needs, sameShape).map((group) => {
    const [{ resource: name, fields, limit }] = group;
    if (limit !== undefined) return limitedLookup(group, limit);
    const types = fields.map((field) => `?::${sqlTypeOf(RESOURCES[name], field)}[]`);
    const columns = fields.map(columnOf).join(', ');
    return {
      sql: select(name, `WHERE (${columns}) IN (SELECT * FROM unnest(${types.join(', ')}))`),
      bindings: fields.map((_, i) => group.map(({ values }) => values[i] as string)),
    };
  });
}

/** Up to `limit` rows for each value of one field. */
function limitedLookup(group: Group<NeedOf<'rows'>>, limit: number): QueryPart {
  const [{ resource: name, fields }] = group;
  const resource = RESOURCES[name];
  const field = assertDefined(fields[0], 'lookup.fields[0]');
  return {
    sql: `SELECT '${name}' AS part, NULL AS key, to_json(x) AS row
      FROM unnest(?::${sqlTypeOf(resource, field)}[]) AS asked (value)
      CROSS JOIN LATERAL (SELECT ${columnsOf(resource)} FROM ${tableOf(resource)}
        WHERE ${columnOf(field)} = asked.value LIMIT ${limit}) AS x`,
    bindings: [group.map(({ values }) => values[0] as string)],
  };
}

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
function neighbourParts(needs: readonly NeedOf<'neighbours'>[]): QueryPart[] {
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
function tenantParts(needs: readonly DataNeed[]): QueryPart[] {
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
const addressParts = (needs: readonly NeedOf<'addresses'>[]): QueryPart[] =>
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
function rangeParts(
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

/** A need of a fact, and its position among all needs as text. */
type FactNeed = NeedOf<'fact'> & { token: string };

/** The number of records of a fact to load when only their existence matters. */
const DEFAULT_LIMIT = 1;

const idsOf = (needs: readonly FactNeed[]): string[] => needs.map(({ id }) => id);
const tokensOf = (needs: readonly FactNeed[]): string[] => needs.map(({ token }) => token);
/** Needs of a group have the same limit. */
const limitOf = ([{ limit }]: Group<FactNeed>): number => limit ?? DEFAULT_LIMIT;

/** The records of a resource for a fact. `where` may use `asked.id`, the id of the fact. */
const referrersOf = (name: ResourceName, where: string, group: Group<FactNeed>): QueryPart => {
  const resource = RESOURCES[name];
  return {
    sql: `SELECT 'fact' AS part, asked.token AS key, json_build_object('resource', '${name}', 'record', to_json(x)) AS row FROM unnest(?::text[], ?::text[]) AS asked (token, id)
      CROSS JOIN LATERAL (SELECT ${columnsOf(resource)} FROM ${tableOf(resource)} AS t WHERE ${where} LIMIT ${limitOf(group)}) AS x`,
    bindings: [tokensOf(group), idsOf(group)],
  };
};

function factParts(needs: readonly DataNeed[]): QueryPart[] {
  const facts = needs.flatMap((need, i): FactNeed[] =>
    need.kind === 'fact' ? [{ ...need, token: String(i) }] : [],
  );
  return grouped(facts, ({ name, limit }) => `${name}|${limit ?? ''}`).flatMap((group) =>
    FACT_QUERIES[group[0].name](group),
  );
}

/** Loads the rows above a region or a location. */
const ancestors =
  (name: 'regions' | 'locations') =>
  (group: Group<FactNeed>): QueryPart[] => [
    {
      sql: `SELECT '${name}' AS part, NULL AS key, to_json(x) AS row FROM (WITH RECURSIVE up AS (
      SELECT * FROM ${name} WHERE id = ANY (?::text[]) UNION SELECT p.* FROM ${name} AS p JOIN up ON p.id = up.parent_id
    ) SELECT ${columnsOf(RESOURCES[name])} FROM up) AS x`,
      bindings: [idsOf(group)],
    },
  ];

/** Records outside the inventory that belong to a tenant, site or device, see `FactName`. */
const externalReferrers = (
  label: string,
  table: string,
  name: string,
  where: string,
  group: Group<FactNeed>,
): QueryPart => ({
  sql: `SELECT 'fact' AS part, asked.token AS key, json_build_object('resource', '${label}', 'id', x.id, 'label', x.label) AS row FROM unnest(?::text[], ?::text[]) AS asked (token, id)
    CROSS JOIN LATERAL (SELECT id, ${name} AS label FROM ${table} WHERE ${where} LIMIT ${limitOf(group)}) AS x`,
  bindings: [tokensOf(group), idsOf(group)],
});

/** SQL: the id of the record in the id of the fact. */
const RECORD_ID = "split_part(asked.id, '/', 2)";
/** SQL: an element of the JSON array that is the id of the fact. */
const keyPart = (i: number) => `(asked.id::json->>${i})`;
const keyCidr = (i: number) => `${keyPart(i)}::cidr`;

/** What a fact `contents` asks for. */
type ContentsId = [
  vrf: string,
  tenantId: string,
  network: string,
  gaps: string[][],
  borders: string[][],
];

/**
 * Addresses in the gaps of a network, and ranges in the network that overlap a gap or cross a border.
 * Each is found by its position, so that records in the networks between the gaps cost nothing.
 */
function contentsParts(group: Group<FactNeed>): QueryPart[] {
  const asked = group.map(({ id }) => JSON.parse(id) as ContentsId);
  const json = (value: unknown) => JSON.stringify(value);
  const found = (name: ResourceName) =>
    `SELECT 'fact' AS part, asked.token AS key, json_build_object('resource', '${name}', 'record', to_json(x)) AS row`;
  const interval = "inet_range((part->>0)::inet, (part->>1)::inet, '[]')";
  const limit = limitOf(group);
  const keys = [tokensOf(group), asked.map(([vrf]) => vrf), asked.map(([, tenantId]) => tenantId)];
  return [
    {
      sql: `${found('ip-addresses')} FROM unnest(?::text[], ?::text[], ?::text[], ?::jsonb[]) AS asked (token, vrf, tenant, gaps)
        CROSS JOIN LATERAL (SELECT y.* FROM jsonb_array_elements(asked.gaps) AS part CROSS JOIN LATERAL (
          SELECT ${columnsOf(RESOURCES['ip-addresses'])} FROM ip_addresses WHERE space_key = space_of(asked.vrf, asked.tenant) AND host >= (part->>0)::inet AND host <= (part->>1)::inet LIMIT ${limit}
        ) AS y LIMIT ${limit}) AS x`,
      bindings: [...keys, asked.map(([, , , gaps]) => json(gaps))],
    },
    {
      sql: `${found('ip-ranges')} FROM unnest(?::text[], ?::text[], ?::text[], ?::cidr[], ?::jsonb[]) AS asked (token, vrf, tenant, network, parts)
        CROSS JOIN LATERAL (SELECT DISTINCT ON (y.id) y.* FROM jsonb_array_elements(asked.parts) AS part CROSS JOIN LATERAL (
          SELECT ${columnsOf(RESOURCES['ip-ranges'])} FROM ip_ranges WHERE space_key = space_of(asked.vrf, asked.tenant) AND span && ${interval}
            AND start_address >= host(asked.network)::inet AND end_address <= host(broadcast(asked.network))::inet
            AND ((part->>2) IS NULL OR span @> ${interval}) LIMIT ${limit}
        ) AS y LIMIT ${limit}) AS x`,
      bindings: [
        ...keys,
        asked.map(([, , network]) => network),
        asked.map(([, , , gaps, borders]) => json([...gaps, ...borders.map((b) => [...b, true])])),
      ],
    },
  ];
}

/**
 * SQL: whether a record starts in a network, is of a tenant and belongs to a site, see `FactName`.
 * Networks inside another sort after it, those with its first address before that address.
 */
const isInheritedAt = (first: string) =>
  `t.space_key = space_of(${keyPart(0)}, ${keyPart(2)}) AND t.${first} ${first === 'cidr' ? `> ${keyCidr(1)}` : `>= host(${keyCidr(1)})::inet`} AND t.${first} <= set_masklen(broadcast(${keyCidr(1)}), CASE family(${keyCidr(1)}) WHEN 4 THEN 32 ELSE 128 END)
  AND t.tenant_id = ${keyPart(2)} AND t.scope_site_id IS NOT DISTINCT FROM ${keyPart(3)}`;

/** The query of each fact for several ids. */
const FACT_QUERIES: Readonly<Record<FactName, (group: Group<FactNeed>) => QueryPart[]>> = {
  usage: (group) => [
    {
      sql: `SELECT 'fact:usage' AS part, p.id AS key, json_build_object('used', (${USED_ADDRESSES})::text) AS row FROM prefixes AS p WHERE p.id = ANY (?::text[])`,
      bindings: [idsOf(group)],
    },
  ],
  regionAncestors: ancestors('regions'),
  locationAncestors: ancestors('locations'),
  contents: contentsParts,
  inheritedAt: (group) => [
    referrersOf('prefixes', `${isInheritedAt('cidr')} AND t.site_id IS NULL`, group),
    referrersOf('ip-ranges', isInheritedAt('start_address'), group),
    referrersOf('ip-addresses', isInheritedAt('host'), group),
  ],
  sitesInside: (group) => [
    {
      sql: `SELECT 'fact' AS part, asked.token AS key, json_build_object('resource', 'sites', 'id', x.site_id) AS row FROM unnest(?::text[], ?::text[]) AS asked (token, id)
        CROSS JOIN LATERAL (SELECT DISTINCT t.site_id FROM prefixes AS t WHERE t.vrf_key = ${keyPart(0)} AND t.tenant_id = ${keyPart(3)}
          AND t.site_id IS NOT NULL AND t.cidr >= ${keyPart(1)}::inet AND t.cidr <= ${keyPart(2)}::inet LIMIT ${MAX_NAMED_SITES}) AS x`,
      bindings: [tokensOf(group), idsOf(group)],
    },
  ],
  tagReferrers: (group) =>
    Object.values(RESOURCES).map(({ name }) =>
      referrersOf(name, "t.tags @> ARRAY[asked.id] AND t.tags <> '{}'", group),
    ),

  customFieldReferrers: (needs) =>
    grouped(needs, ({ id }) => String((JSON.parse(id) as string[])[1])).map((group) => {
      const [, name] = JSON.parse(group[0].id) as [string, ResourceName];
      const { scopeKind } = RESOURCES[name];
      const tenant =
        scopeKind === 'isTenant'
          ? 't.id'
          : scopeKind === 'catalogue'
            ? "'platform'"
            : 't.tenant_id';
      return referrersOf(
        name,
        `jsonb_exists(t.custom_fields, ${keyPart(2)}) AND t.custom_fields <> '{}' AND ${keyPart(0)} IN ('platform', ${tenant})`,
        group,
      );
    }),

  externalReferrers: (needs) =>
    grouped(needs, ({ id }) => id.slice(0, id.indexOf('/'))).flatMap((group) => {
      const [name = ''] = group[0].id.split('/');
      const grants = externalReferrers(
        'assignments',
        'grants',
        'role_id',
        `${{ sites: 'site_id', devices: 'device_id' }[name] ?? 'tenant_id'} = ${RECORD_ID}`,
        group,
      );
      if (name !== 'tenants') return [grants];
      const at = (label: string, table: string, column: string, where = '') =>
        externalReferrers(label, table, column, `tenant_id = ${RECORD_ID}${where}`, group);
      return [
        grants,
        at('users', 'users', 'username'),
        at('webhooks', 'webhooks', 'id', ' AND deleted_at IS NULL'),
        at('schedules', 'schedules', 'name', ' AND deleted_at IS NULL'),
      ];
    }),

  grantsAt: (group) => [
    {
      sql: `SELECT 'fact' AS part, asked.token AS key, json_build_object('resource', 'assignments', 'id', x.id) AS row FROM unnest(?::text[], ?::text[]) AS asked (token, id)
        CROSS JOIN LATERAL (SELECT g.id FROM grants AS g WHERE (g.level = 'site' AND asked.id = 'sites/' || g.site_id)
          OR (g.level = 'device' AND asked.id = 'devices/' || g.device_id) LIMIT 1) AS x`,
      bindings: [tokensOf(group), idsOf(group)],
    },
  ],

  duplicates: (group) => [
    referrersOf(
      'prefixes',
      't.vrf_id = asked.id AND EXISTS (SELECT FROM prefixes AS o WHERE o.space_key = t.space_key AND o.cidr = t.cidr AND o.id < t.id)',
      group,
    ),
    referrersOf(
      'ip-addresses',
      't.vrf_id = asked.id AND EXISTS (SELECT FROM ip_addresses AS o WHERE o.space_key = t.space_key AND o.host = t.host AND o.id <> t.id AND (o.shared = 0 OR t.shared = 0))',
      group,
    ),
  ],
};
