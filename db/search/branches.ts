import { escapeLike } from '../core/like.ts';
import { scopeCondition } from '../core/scopeSql.ts';
import { allOf, anyOf, type Sql } from '../core/sql.ts';
import { labelSql } from '../inventory/labels.ts';
import { readableCondition } from '../inventory/readable.ts';
import { columnOf, tableOf, withinNetwork } from '../inventory/tables.ts';
import { USER_TEXT } from '../models/User.ts';
import { visibleCondition, type ApprovalReader } from '../approvals/approvals.ts';
import { isEmpty, type Scope } from '../../domain/access/scope.ts';
import { NO_PROVIDER } from '../../domain/auth/providers.ts';
import type { ResourceName } from '../../domain/inventory/names.ts';
import type { Resource } from '../../domain/inventory/resource.ts';
import { RESOURCES } from '../../domain/inventory/resources/index.ts';
import type { NetworkShape, SearchKind, SearchQuery } from '../../domain/search/query.ts';

/** Where the caller may read what a search can find. */
export type SearchReader = {
  inventory: Scope;
  schedules: Scope;
  users: Scope;
  approvals: ApprovalReader;
};

/** A part of a search: the matches of one kind. */
export type Branch = Sql & { kind: SearchKind | 'around' };

/** A table as a search sees it: SQL of what matches show, and of what is compared. */
type Source = {
  kind: SearchKind;
  from: string;
  label: string;
  description: string;
  tenant: string;
  vrf: string;
  /** Columns that a text can equal, each with an index. */
  exact: readonly string[];
  /** A column that a number can equal. */
  number?: string;
  /** The text with a trigram index, in lower case; it begins with the label. */
  text: string;
  visible: Sql;
};

/** Records that are read to rank the matches of one kind. */
const MAX_CANDIDATES = 200;

/** Texts shorter than this have no trigram: only beginnings are searched. */
const SHORTEST_PART = 3;

const NETWORKS: ReadonlySet<ResourceName> = new Set(['prefixes', 'ip-ranges', 'ip-addresses']);

/** The fields whose values name a record, besides its id if callers choose it. */
const EXACT_FIELDS: Readonly<Partial<Record<ResourceName, readonly string[]>>> = {
  devices: ['name', 'serial', 'assetTag'],
  racks: ['name', 'serial'],
  interfaces: ['name', 'macAddress'],
  'device-types': ['model'],
  cables: ['label'],
  vrfs: ['name', 'rd'],
  'ip-addresses': ['dnsName'],
  prefixes: [],
  'ip-ranges': [],
};

function sourceOf(resource: Resource, scope: Scope): Source {
  const { name, fields, idPrefix, scopeKind } = resource;
  const exact = EXACT_FIELDS[name] ?? ['name'];
  return {
    kind: name,
    from: tableOf(resource),
    label: `coalesce(nullif(${labelSql(resource)}, ''), id)`,
    description: name === 'ip-addresses' ? `coalesce(dns_name, description)` : 'description',
    tenant: scopeKind === 'isTenant' ? 'id' : scopeKind === 'catalogue' ? 'NULL' : 'tenant_id',
    vrf: 'vrfId' in fields && name !== 'interfaces' ? 'vrf_id' : 'NULL',
    exact: [...exact.map(columnOf), ...(idPrefix === null ? ['id'] : [])],
    ...(name === 'vlans' && { number: 'vid' }),
    text: 'search',
    visible: readableCondition(resource, scope),
  };
}

/** The records of other areas that are found by text. */
const otherSources = ({ schedules, users, approvals }: SearchReader): Source[] => [
  {
    kind: 'schedules',
    from: 'schedules',
    label: 'name',
    description: 'description',
    tenant: 'tenant_id',
    vrf: 'NULL',
    exact: [],
    text: 'lower(name)',
    visible: allOf([{ sql: 'deleted_at IS NULL', bindings: [] }, scopeCondition(schedules)]),
  },
  {
    kind: 'approvals',
    from: 'approvals AS a',
    label: 'a.title',
    description: 'a.type',
    tenant: 'a.tenant_id',
    vrf: 'NULL',
    exact: [],
    text: 'lower(a.title)',
    visible: visibleCondition(approvals),
  },
  {
    kind: 'users',
    from: 'users',
    label: 'username',
    description: 'display_name',
    tenant: 'tenant_id',
    vrf: 'NULL',
    exact: [],
    text: USER_TEXT,
    // Service accounts are no users that a client can read at /api/users.
    visible: allOf([{ sql: 'provider_id <> ?', bindings: [NO_PROVIDER] }, scopeCondition(users)]),
  },
];

const columnsOf = ({ label, description, tenant, vrf, text }: Source, isExact: boolean): string =>
  `id, ${label} AS label, ${description} AS description, ${tenant} AS tenant_id, ${vrf} AS vrf_id, ${text} AS text, ${isExact} AS is_exact`;

/** The spellings under which a text may be stored where case counts. */
const spellings = ({ text }: SearchQuery, { kind }: Source): string[] => {
  const canonical =
    kind === 'interfaces' ? RESOURCES.interfaces.fields.macAddress?.canonical?.(text) : undefined;
  return [
    ...new Set([
      text,
      text.toLowerCase(),
      text.toUpperCase(),
      ...(typeof canonical === 'string' ? [canonical] : []),
    ]),
  ];
};

/** The condition that a record is named by the text; undefined for kinds without such names. */
function equalTo(source: Source, query: SearchQuery): Sql | undefined {
  const { exact, number } = source;
  if (exact.length === 0) return undefined;
  const forms = spellings(query, source);
  const isNumber = number !== undefined && /^\d{1,9}$/.test(query.text);
  return anyOf([
    ...exact.map((column) => ({ sql: `${column} = ANY (?::text[])`, bindings: [forms] })),
    ...(isNumber ? [{ sql: `${number} = ?::integer`, bindings: [query.text] }] : []),
  ]);
}

/** Candidates of a kind: what equals the text, what begins with it, what contains all words. */
function candidates(source: Source, query: SearchQuery): Sql[] {
  const { from, text, visible } = source;
  const select = (condition: Sql, isExact = false): Sql => {
    const { sql, bindings } = allOf([condition, visible]);
    const columns = columnsOf(source, isExact);
    return {
      sql: `(SELECT ${columns} FROM ${from} WHERE ${sql} LIMIT ${MAX_CANDIDATES})`,
      bindings,
    };
  };
  const like = (patterns: readonly string[]): Sql =>
    allOf(patterns.map((pattern) => ({ sql: `${text} LIKE ?`, bindings: [pattern] })));
  const whole = escapeLike(query.text.toLowerCase());
  const isLong = query.words.some(({ length }) => length >= SHORTEST_PART);
  const equal = equalTo(source, query);
  return [
    ...(equal ? [select(equal, true)] : []),
    select(like([`${whole}%`])),
    ...(isLong ? [select(like(query.words.map((word) => `%${escapeLike(word)}%`)))] : []),
  ];
}

const MATCH = `? AS kind, id, label, description, tenant_id AS "tenantId", vrf_id AS "vrfId"`;

/** The matches of a kind by text, best first. */
function byText(source: Source, query: SearchQuery, limit: number): Branch {
  const found = candidates(source, query);
  const lower = query.text.toLowerCase();
  return {
    kind: source.kind,
    sql: `(SELECT ${MATCH}, rank FROM (
        SELECT DISTINCT ON (id) * FROM (
          SELECT *, CASE WHEN is_exact OR lower(label) = ? THEN 0 WHEN starts_with(text, ?) THEN 1
            WHEN text ~ ? THEN 2 ELSE 3 END AS rank
          FROM (${found.map(({ sql }) => sql).join(' UNION ALL ')}) AS c) AS r
        ORDER BY id, rank) AS m
      ORDER BY rank, label, id LIMIT ?)`,
    bindings: [
      source.kind,
      lower,
      lower,
      `\\m${escapeRegex(lower)}`,
      ...found.flatMap(({ bindings }) => bindings),
      limit,
    ],
  };
}

/** Backslash makes any character but a letter or a digit mean itself. */
const escapeRegex = (text: string): string => text.replaceAll(/[^\p{L}\p{N} ]/gu, '\\$&');

/** The records whose text has a word like this one, for a text that nothing contains. */
function byLikeness(source: Source, { text }: SearchQuery, limit: number): Branch {
  const lower = text.toLowerCase();
  const { sql, bindings } = allOf([
    { sql: `? <% ${source.text}`, bindings: [lower] },
    source.visible,
  ]);
  return {
    kind: source.kind,
    sql: `(SELECT ${MATCH}, 4 AS rank FROM (
        SELECT ${columnsOf(source, false)} FROM ${source.from} WHERE ${sql} LIMIT ${MAX_CANDIDATES}) AS c
      ORDER BY word_similarity(?, text) DESC, label, id LIMIT ?)`,
    bindings: [source.kind, ...bindings, lower, limit],
  };
}

/** The networks that an address, a network or the beginning of one means. */
function byNetwork(source: Source, shape: NetworkShape, limit: number): Branch | undefined {
  const condition = networkCondition(source.kind, shape);
  if (!condition) return undefined;
  const { column } = condition;
  const { sql, bindings } = allOf([condition, source.visible]);
  const rank = shape.kind === 'beginning' ? 1 : 0;
  return {
    kind: source.kind,
    sql: `(SELECT ${MATCH}, ${rank} AS rank FROM (
        SELECT ${columnsOf(source, true)}, ${column} AS network FROM ${source.from} WHERE ${sql}
        ORDER BY ${column}, id LIMIT ?) AS c
      ORDER BY network, id)`,
    bindings: [source.kind, ...bindings, limit],
  };
}

function networkCondition(
  kind: SearchKind,
  shape: NetworkShape,
): (Sql & { column: string }) | undefined {
  const column = { prefixes: 'cidr', 'ip-ranges': 'start_address', 'ip-addresses': 'host' }[
    kind as string
  ];
  if (column === undefined) return undefined;
  if (shape.kind === 'beginning') return { column, ...withinNetwork(column, shape.cidr) };
  if (kind === 'prefixes')
    return {
      column,
      sql: 'cidr = ?::cidr',
      bindings: [shape.kind === 'network' ? shape.cidr : shape.host],
    };
  if (shape.kind === 'network') return undefined;
  return kind === 'ip-addresses'
    ? { column, sql: 'host = ?::inet', bindings: [shape.host] }
    : {
        column,
        sql: `span @> inet_range(?::inet, ?::inet, '[]')`,
        bindings: [shape.host, shape.host],
      };
}

/** The prefixes around an address or a network, smallest first. */
function around(prefixes: Source, shape: NetworkShape, limit: number): Branch[] {
  if (shape.kind === 'beginning') return [];
  const network = shape.kind === 'network' ? shape.cidr : shape.host;
  const { sql, bindings } = allOf([
    {
      sql: 'cidr = ANY (supernets(?::inet)) AND cidr >> ?::cidr',
      bindings: [network, network],
    },
    prefixes.visible,
  ]);
  return [
    {
      kind: 'around',
      sql: `(SELECT ${MATCH}, 0 AS rank FROM (
          SELECT ${columnsOf(prefixes, false)}, cidr FROM prefixes WHERE ${sql}) AS c
        ORDER BY masklen(cidr) DESC, id LIMIT ?)`,
      bindings: ['around', ...bindings, limit],
    },
  ];
}

export type SearchParts = { kinds: ReadonlySet<SearchKind>; limit: number; aroundLimit: number };

const sourcesOf = (reader: SearchReader, kinds: ReadonlySet<SearchKind>): Source[] =>
  [
    ...(isEmpty(reader.inventory)
      ? []
      : Object.values(RESOURCES).map((resource) => sourceOf(resource, reader.inventory))),
    ...otherSources(reader),
  ].filter(({ kind }) => kinds.has(kind));

/** The branches of a search, each with up to `limit` matches of one kind. */
export function branchesOf(
  query: SearchQuery,
  reader: SearchReader,
  { kinds, limit, aroundLimit }: SearchParts,
): Branch[] {
  const { network } = query;
  return sourcesOf(reader, kinds).flatMap((source) => {
    if (!network || !NETWORKS.has(source.kind as ResourceName))
      return [byText(source, query, limit)];
    const own = byNetwork(source, network, limit);
    return [
      ...(own ? [own] : []),
      ...(source.kind === 'prefixes' ? around(source, network, aroundLimit) : []),
    ];
  });
}

/** The branches that find misspelled names. Addresses and networks are not names. */
export const similarBranchesOf = (
  query: SearchQuery,
  reader: SearchReader,
  { kinds, limit }: SearchParts,
): Branch[] =>
  sourcesOf(reader, kinds)
    .filter(({ kind }) => !NETWORKS.has(kind as ResourceName))
    .map((source) => byLikeness(source, query, limit));
