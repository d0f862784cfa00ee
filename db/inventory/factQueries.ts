import type { ResourceName } from '../../domain/inventory/names.ts';
import {
  MAX_NAMED_SITES,
  type DataNeed,
  type FactName,
} from '../../domain/inventory/planSnapshot.ts';
import { RESOURCES } from '../../domain/inventory/resources/index.ts';
import { heldTableOf, holdOver } from '../retention/holds.ts';
import { grouped, type Group, type NeedOf, type QueryPart } from './queryParts.ts';
import { USAGE_FACT } from './spaceQueries.ts';
import { columnsOf, tableOf } from './tables.ts';

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

export function factParts(needs: readonly DataNeed[]): QueryPart[] {
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

/** SQL: an approval request waits for a decision, or what was approved has not been done yet. */
const IS_OPEN_APPROVAL = `(status = 'pending'
  OR (status = 'approved' AND job_type IS NOT NULL AND execution IN ('none', 'queued', 'running')))`;

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
      sql: `SELECT 'fact:usage' AS part, p.id AS key, ${USAGE_FACT} AS row FROM prefixes AS p WHERE p.id = ANY (?::text[])`,
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
        // As an operator, it can use the index of the fields.
        `t.custom_fields ?? ${keyPart(2)} AND t.custom_fields <> '{}' AND ${keyPart(0)} IN ('platform', ${tenant}) AND NOT jsonb_exists(asked.id::jsonb->3, ${tenant})`,
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
        at('secrets', 'secrets', 'name'),
        at('backups', 'backups', 'id', ` AND status NOT IN ('deleting', 'deleted')`),
        at('workflows', 'approvals', 'title', ` AND ${IS_OPEN_APPROVAL}`),
        at('jobs', 'jobs', 'id', ` AND status IN ('queued', 'running')`),
      ];
    }),

  grantsAt: (needs) =>
    grouped(needs, ({ id }) => id.slice(0, id.indexOf('/'))).map((group) => {
      const level = group[0].id.startsWith('sites/') ? 'site' : 'device';
      return {
        sql: `SELECT 'fact' AS part, asked.token AS key, json_build_object('resource', 'assignments', 'id', x.id) AS row FROM unnest(?::text[], ?::text[]) AS asked (token, id)
          CROSS JOIN LATERAL (SELECT id FROM grants WHERE level = '${level}' AND ${level}_id = ${RECORD_ID} LIMIT 1) AS x`,
        bindings: [tokensOf(group), idsOf(group)],
      };
    }),

  legalHolds: (needs) =>
    grouped(needs, ({ id }) => id.slice(0, id.indexOf('/'))).map((group) => {
      const [name = ''] = group[0].id.split('/');
      const { type, table, tenantOf } = heldTableOf(name as ResourceName);
      return {
        sql: `SELECT 'fact' AS part, asked.token AS key, json_build_object('resource', 'legal-holds', 'id', h.id, 'label', h.tenant_id) AS row FROM unnest(?::text[], ?::text[]) AS asked (token, id)
          JOIN ${table} AS t ON t.id = ${RECORD_ID} CROSS JOIN LATERAL (${holdOver('t', type, tenantOf('t'))}) AS h`,
        bindings: [tokensOf(group), idsOf(group)],
      };
    }),

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
