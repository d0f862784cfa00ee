import { escapeLike, letterCases, likeAnyCase } from '../core/like.ts';
import { allOf, anyOf, type Sql } from '../core/sql.ts';
import { withinNetwork } from '../inventory/tables.ts';
import { isMacAddress } from '../../domain/inventory/fields.ts';
import { RESOURCES } from '../../domain/inventory/resources/index.ts';
import { unicodeForms } from '../../domain/shared/unicodeForms.ts';
import type { NetworkShape, SearchKind, SearchQuery } from '../../domain/search/query.ts';
import type { Source } from './sources.ts';

/** A part of a search: the matches of one kind. */
export type Branch = Sql & { kind: SearchKind | 'around' };

/** Records that are read to rank the matches of one kind. */
const MAX_CANDIDATES = 200;

/** Texts shorter than this have no trigram: only beginnings are searched. */
const SHORTEST_PART = 3;

/** Whether a text is too short for trigrams. */
export const isShort = ({ words }: SearchQuery): boolean =>
  words.every((word) => word.normalize('NFC').length < SHORTEST_PART);

/** The first characters of a text, which have an index. */
const INDEXED_CHARACTERS = 2;

const isNetwork = ({ kind }: Source): boolean =>
  kind === 'prefixes' || kind === 'ip-ranges' || kind === 'ip-addresses';

const columnsOf = ({ label, description, tenant, vrf }: Source): string =>
  `id, coalesce(nullif(${label}, ''), id) AS label, ${description} AS description, ${tenant} AS tenant_id, ${vrf} AS vrf_id`;

type Named = Source & { text: string };
const hasText = (source: Source): source is Named => source.text !== null;

/**
 * The records that a condition holds for, at most `limit` for each reason for which they are readable:
 * each reason has a query of its own, which reads the index of that reason or that of the condition.
 */
function select(
  source: Source,
  condition: Sql,
  { more, limit, order = '' }: { more?: Sql; limit: number; order?: string },
): Sql {
  const columns = `${columnsOf(source)}${more ? `, ${more.sql}` : ''}`;
  const parts = source.readable.map(({ from, where }) => {
    const { sql, bindings } = allOf([condition, where]);
    const text = `(SELECT ${columns} FROM ${from} WHERE ${sql} ${order} LIMIT ?)`;
    return { sql: text, bindings: [...(more?.bindings ?? []), ...bindings, limit] };
  });
  return unionOf(parts);
}

const column = (sql: string): Sql => ({ sql, bindings: [] });

const unionOf = (parts: readonly Sql[]): Sql => ({
  sql: parts.map(({ sql }) => sql).join(' UNION ALL '),
  bindings: parts.flatMap(({ bindings }) => bindings),
});

/** The spellings under which a text may be stored where case counts. */
const spellings = ({ text }: SearchQuery, { kind }: Source): string[] => {
  const canonical =
    kind === 'interfaces' ? RESOURCES.interfaces.fields.macAddress?.canonical?.(text) : undefined;
  return [
    ...new Set([
      ...unicodeForms(text).flatMap((form) => [form, form.toUpperCase()]),
      ...letterCases(text),
      ...(typeof canonical === 'string' ? [canonical] : []),
    ]),
  ];
};

const isNumberOf = ({ number }: Source, { text }: SearchQuery): boolean =>
  number !== undefined && /^\d{1,9}$/.test(text);

/** Whether a record can be named by the text, and not contain it. */
const hasOtherForms = (source: Source, query: SearchQuery): boolean =>
  isNumberOf(source, query) || (source.kind === 'interfaces' && isMacAddress(query.text));

/** The condition that a record is named by the text; undefined for kinds without such names. */
function equalTo(source: Source, query: SearchQuery): Sql | undefined {
  const { exact, number = '' } = source;
  if (exact.length === 0) return undefined;
  const forms = spellings(query, source);
  return anyOf([
    ...exact.map((name) => ({ sql: `${name} = ANY (?::text[])`, bindings: [forms] })),
    ...(isNumberOf(source, query)
      ? [{ sql: `${number} = ?::integer`, bindings: [query.text] }]
      : []),
  ]);
}

/**
 * Candidates of a kind: what contains all words. For a text without long words, or in a thorough search, also
 * what equals the text or begins with it, which may not be among the candidates that are read.
 */
function candidates(source: Named, query: SearchQuery, isThorough: boolean): Sql {
  const { text } = source;
  const equal = equalTo(source, query);
  const isExact = equal ? `(${equal.sql}) IS TRUE` : 'FALSE';
  const more = { sql: `${text} AS text, ${isExact} AS is_exact`, bindings: equal?.bindings ?? [] };
  const matching = (condition: Sql): Sql =>
    select(source, condition, { more, limit: MAX_CANDIDATES });
  if (isShort(query))
    return unionOf([
      ...(equal ? [matching(equal)] : []),
      ...beginning(source, query).map(matching),
    ]);
  const contains = matching(
    allOf(query.words.map((word) => likeAnyCase(text, word, (form) => `%${form}%`))),
  );
  const isNamed = equal && (isThorough || hasOtherForms(source, query));
  return unionOf([
    contains,
    ...(isNamed ? [matching(equal)] : []),
    ...(isThorough ? [matching(likeAnyCase(text, query.text, (form) => `${form}%`))] : []),
  ]);
}

const like = (text: string, pattern: string): Sql => ({
  sql: `${text} LIKE ?`,
  bindings: [pattern],
});

/** The conditions that a text begins with a short one, each with an index on the first characters. */
const beginning = ({ beginnings, text }: Named, query: SearchQuery): Sql[] =>
  [text, ...beginnings].flatMap((each) =>
    letterCases(query.text).map((form) => {
      const first = Array.from(form).slice(0, INDEXED_CHARACTERS).join('');
      return allOf([
        like(`left(${each}, ${INDEXED_CHARACTERS})`, `${escapeLike(first)}%`),
        like(each, `${escapeLike(form)}%`),
      ]);
    }),
  );

const MATCH = `? AS kind, id, label, description, tenant_id AS "tenantId", vrf_id AS "vrfId"`;

/**
 * The matches of a kind by text, best first. `isCut`: not all candidates were read, so that better ones
 * may be missing.
 */
function byText(source: Named, query: SearchQuery, { limit, isThorough }: TextParts): Branch {
  const { sql, bindings } = candidates(source, query, isThorough);
  const forms = letterCases(query.text);
  const beginnings = forms.map((form) => `${escapeLike(form)}%`);
  return {
    kind: source.kind,
    sql: `(SELECT ${MATCH}, rank, count(*) OVER () >= ${MAX_CANDIDATES} AS "isCut" FROM (
        SELECT DISTINCT ON (id) * FROM (
          SELECT *, CASE WHEN is_exact OR lower(label) = ANY (?::text[]) THEN 0
            WHEN text LIKE ANY (?::text[]) OR lower(label) LIKE ANY (?::text[]) THEN 1
            WHEN text ~ ? THEN 2 ELSE 3 END AS rank
          FROM (${sql}) AS c) AS r
        ORDER BY id, rank) AS m
      ORDER BY rank, label, id LIMIT ?)`,
    bindings: [source.kind, forms, beginnings, beginnings, wordOf(forms), ...bindings, limit],
  };
}

/** A pattern of a word that begins with one of the forms. */
const wordOf = (forms: readonly string[]): string => `\\m(?:${forms.map(escapeRegex).join('|')})`;

/** Backslash makes any character but a letter or a digit mean itself. */
const escapeRegex = (text: string): string => text.replaceAll(/[^\p{L}\p{N} ]/gu, '\\$&');

/** The records whose text has a word like this one, for a text that nothing contains. */
function byLikeness(source: Named, { text }: SearchQuery, limit: number): Branch {
  const lower = text.normalize('NFC').toLowerCase();
  const { sql, bindings } = select(
    source,
    { sql: `? <% ${source.text}`, bindings: [lower] },
    { more: column(`${source.text} AS text`), limit: MAX_CANDIDATES },
  );
  return {
    kind: source.kind,
    sql: `(SELECT ${MATCH}, 4 AS rank, FALSE AS "isCut" FROM (
        SELECT DISTINCT ON (id) * FROM (${sql}) AS r ORDER BY id) AS c
      ORDER BY word_similarity(?, text) DESC, label, id LIMIT ?)`,
    bindings: [source.kind, ...bindings, lower, limit],
  };
}

/** The record with an id. */
export function byId(source: Source, id: string): Branch {
  const { sql, bindings } = select(source, { sql: 'id = ?', bindings: [id] }, { limit: 1 });
  return {
    kind: source.kind,
    sql: `(SELECT ${MATCH}, 0 AS rank, FALSE AS "isCut" FROM (${sql}) AS c LIMIT 1)`,
    bindings: [source.kind, ...bindings],
  };
}

/** The networks that an address, a network or the beginning of one means. */
function byNetwork(source: Source, shape: NetworkShape, limit: number): Branch | undefined {
  const condition = networkCondition(source.kind, shape);
  if (!condition) return undefined;
  const { sql, bindings } = select(source, condition, {
    more: column(`${condition.column} AS network`),
    limit,
    order: `ORDER BY ${condition.column}, id`,
  });
  const rank = shape.kind === 'beginning' ? 1 : 0;
  return {
    kind: source.kind,
    sql: `(SELECT ${MATCH}, ${rank} AS rank, FALSE AS "isCut" FROM (
        SELECT DISTINCT ON (network, id) * FROM (${sql}) AS r ORDER BY network, id LIMIT ?) AS c
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
  const contains = {
    sql: 'cidr = ANY (supernets(?::inet)) AND cidr >> ?::cidr',
    bindings: [network, network],
  };
  const { sql, bindings } = select(prefixes, contains, {
    more: column('masklen(cidr) AS length'),
    limit,
    order: 'ORDER BY masklen(cidr) DESC, id',
  });
  return [
    {
      kind: 'around',
      sql: `(SELECT ${MATCH}, 0 AS rank, FALSE AS "isCut" FROM (
          SELECT DISTINCT ON (length, id) * FROM (${sql}) AS r ORDER BY length DESC, id LIMIT ?) AS c
        ORDER BY length DESC, id)`,
      bindings: ['around', ...bindings, limit],
    },
  ];
}

/** How many matches of a kind are asked for; `isThorough` after an answer that was cut. */
type TextParts = { limit: number; isThorough: boolean };
type SearchParts = TextParts & { aroundLimit: number };

/** The branches of a search, each with up to `limit` matches of one kind. */
export function branchesOf(
  query: SearchQuery,
  sources: readonly Source[],
  { aroundLimit, ...parts }: SearchParts,
): Branch[] {
  const { network } = query;
  return sources.flatMap((source) => {
    if (!network || !isNetwork(source))
      return hasText(source) ? [byText(source, query, parts)] : [];
    const own = byNetwork(source, network, parts.limit);
    return [
      ...(own ? [own] : []),
      ...(source.kind === 'prefixes' ? around(source, network, aroundLimit) : []),
    ];
  });
}

/** The branches that find misspelled names. Addresses and networks are not names. */
export const similarBranchesOf = (
  query: SearchQuery,
  sources: readonly Source[],
  limit: number,
): Branch[] =>
  sources.flatMap((source) =>
    hasText(source) && !isNetwork(source) ? [byLikeness(source, query, limit)] : [],
  );
