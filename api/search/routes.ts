import { Type } from 'typebox';
import { MATCHES, SEARCH_KINDS, type SearchKind } from '../../domain/search/query.ts';
import { invalidField } from '../../domain/shared/errors.ts';
import type { Search } from '../../services/search/search.ts';
import { ok } from '../http/response.ts';
import { route, type Route } from '../http/route.ts';
import { closed, Nullable, Reference } from '../http/schemas.ts';
import { LINE_WITH_TEXT } from '../../domain/shared/oneLine.ts';

const DEFAULT_LIMIT = 6;
const MAX_LIMIT = 20;

const Kind = Type.Union(SEARCH_KINDS.map((kind) => Type.Literal(kind)));

const SearchQuery = Type.Object(
  {
    q: Type.String({
      minLength: 1,
      maxLength: 200,
      // With a character that is no white space of any kind: the search ignores that around the text.
      ...LINE_WITH_TEXT,
      description:
        'An id; an address, a network or the beginning of one, such as `10.1.`; a MAC address in any ' +
        'notation; a serial number or an asset tag; or words, all of which must be in the record.',
      examples: ['10.1.2.3'],
    }),
    kinds: Type.Optional(
      Type.String({
        pattern: '^[a-z-]+(,[a-z-]+)*$',
        maxLength: 500,
        'x-rule': 'must be kinds, separated by commas',
        description: `The kinds to search, separated by commas; by default all: ${SEARCH_KINDS.join(', ')}.`,
        examples: ['devices,prefixes'],
      }),
    ),
    limit: Type.Integer({
      minimum: 1,
      maximum: MAX_LIMIT,
      default: DEFAULT_LIMIT,
      description: 'Maximum number of records of each kind.',
    }),
  },
  closed,
);

const shown = {
  id: Type.String(),
  label: Type.String({ description: 'The name, the network, the address or the title.' }),
  description: Type.String(),
  tenantId: Nullable(Reference('tenants')),
  vrfId: Nullable(Reference('vrfs', 'Of an address or a network; null: global table.')),
};

const SearchResult = Type.Object(
  {
    items: Type.Array(
      Type.Object(
        {
          kind: Kind,
          ...shown,
          match: Type.Union(
            MATCHES.map((match) => Type.Literal(match)),
            {
              description:
                '`exact`: the text is the id, the name, the address, the serial number or the like; ' +
                '`prefix`: the record begins with it; `word`: a word does; `part`: it is inside a ' +
                'word; `similar`: nothing contains the text, and this is spelled much like it.',
            },
          ),
        },
        { title: 'SearchMatch', ...closed },
      ),
      { description: 'Best matches first.' },
    ),
    around: Type.Array(Type.Object(shown, { title: 'SearchPrefix', ...closed }), {
      description: 'The prefixes that contain the address or network in `q`, smallest first.',
    }),
    more: Type.Array(Type.String(), { description: 'Kinds with more matches than `limit`.' }),
    incomplete: Type.Array(Type.String(), {
      description: 'Kinds that did not answer in time. A longer text may help.',
    }),
  },
  { title: 'SearchResult', ...closed },
);

const isKind = (name: string): name is SearchKind =>
  (SEARCH_KINDS as readonly string[]).includes(name);

/** Error: `invalid_request`. */
function kindsFrom(text: string | undefined): SearchKind[] | undefined {
  const names = text?.split(',');
  const unknown = names?.find((name) => !isKind(name));
  if (unknown !== undefined)
    throw invalidField('query', '/kinds', 'enum', `has the unknown kind ${unknown}`);
  return names?.filter(isKind);
}

/** The route that searches records of all kinds. */
export const searchRoutes = (search: Search): Route[] => [
  route({
    method: 'GET',
    path: '/api/search',
    tag: 'Search',
    signedIn: 'it finds only what the caller may read',
    operationId: 'searchRecords',
    summary: 'Search records of all kinds',
    description:
      'Finds what you may read. Payloads, logs and results of jobs are not searched; jobs, webhooks ' +
      'and backups are found by id only. Texts of one or two characters find beginnings of names.',
    query: SearchQuery,
    responses: { 200: SearchResult },
    expensiveRead: {},
    handle: async ({ caller, query: { q, kinds, limit }, signal }) =>
      ok(await search.find(caller, { q, kinds: kindsFrom(kinds), limit }, signal)),
  }),
];
