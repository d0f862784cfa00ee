import { Type, type TObject, type TSchema } from 'typebox';
import type { Caller } from '../../domain/shared/caller.ts';
import { invalidField } from '../../domain/shared/errors.ts';
import { LABEL_KINDS, type NamedIds, type Names } from '../../domain/shared/labels.ts';
import { closed } from './schemas.ts';
import { etagOfText } from './etag.ts';
import { compileReferences } from './references.ts';
import type { HttpResponse } from './response.ts';
import type { Route } from './route.ts';

/** Reads names, as far as the caller may know them. */
export type FindNames = (caller: Caller, ids: NamedIds) => Promise<Names>;

const NAMES = ['labels', 'people'] as const;

const Labels = Type.Object(
  Object.fromEntries(
    LABEL_KINDS.map((kind) => [kind, Type.Optional(Type.Record(Type.String(), Type.String()))]),
  ),
  {
    description:
      'Labels of the records that the response refers to, by kind and id. Records that you may not ' +
      'read, and those that no longer exist, have none.',
    ...closed,
  },
);
const People = Type.Record(Type.String(), Type.Object({ displayName: Type.String() }, closed), {
  description:
    'Who did what the response shows, and other accounts that it mentions if you may read them, ' +
    'by id. Actors of a gateway without an account here are not in it.',
});

/** What `include` adds to responses. Some routes can add more than names. */
export const includedSchema = (routes: readonly Route[]): TObject =>
  Type.Object(
    {
      labels: Type.Optional(Labels),
      people: Type.Optional(People),
      ...Object.fromEntries(
        routes.flatMap(({ extras = {} }) =>
          Object.entries(extras).map(([name, { schema }]) => [name, Type.Optional(schema)]),
        ),
      ),
    },
    { title: 'Included', description: 'What `include` asked for.', ...closed },
  );

const INCLUDED = { $ref: '#/components/schemas/Included' };

type ObjectSchema = TSchema & { title?: string; properties?: Record<string, TSchema> };

/** The titles of the schemas of responses to which `include` can add something. */
const includableTitles = (routes: readonly Route[]): ReadonlySet<string> =>
  new Set(
    routes.flatMap(({ includes, responses }) => {
      const { title } = (responses[200] ?? {}) as ObjectSchema;
      return includes && title !== undefined ? [title] : [];
    }),
  );

/**
 * Returns the function that declares `included` in schemas of the API description: a record that can
 * be read has it wherever it is, so that it has one schema.
 */
export function declareIncluded(routes: readonly Route[]): (schema: TSchema) => TSchema {
  const titles = includableTitles(routes);
  const declare = (node: unknown): unknown => {
    if (Array.isArray(node)) return node.map(declare);
    if (typeof node !== 'object' || node === null) return node;
    const schema = Object.fromEntries(
      Object.entries(node).map(([key, value]) => [key, declare(value)]),
    ) as ObjectSchema;
    return schema.properties && titles.has(schema.title ?? '')
      ? { ...schema, properties: { ...schema.properties, included: INCLUDED } }
      : schema;
  };
  return (schema) => declare(schema) as TSchema;
}

const includeQuery = (names: readonly string[]): TSchema => {
  const one = `(?:${names.join('|')})`;
  return Type.String({
    pattern: `^${one}(?:,${one})*$`,
    maxLength: 100,
    'x-rule': `must be one or more of ${names.join(', ')}, separated by commas`,
    description:
      `Adds \`included\` to the response, with what is named here: ${names.join(', ')}; several are ` +
      'separated by commas. Streams have nothing beside them.',
    examples: [names.join(',')],
  });
};

/** Lists and reads of JSON by known callers. */
const canInclude = ({ method, public: isPublic, responses }: Route): boolean =>
  method === 'GET' && isPublic === undefined && (responses[200] ?? null) !== null;

/** Lets every list and read take `include`. Routes that serve files or streams only do not. */
export const withInclude = (routes: readonly Route[]): Route[] =>
  routes.map((route) => {
    if (!canInclude(route)) return route;
    const names = [...NAMES, ...Object.keys(route.extras ?? {})];
    const query = Type.Object(
      { ...route.query?.properties, include: Type.Optional(includeQuery(names)) },
      closed,
    );
    return { ...route, query, includes: names };
  });

/** Takes `include` out of a checked query: handlers do not know it. */
export function takeInclude({ includes }: Route, query: Record<string, unknown>): Set<string> {
  const { include } = query;
  if (!includes || typeof include !== 'string') return new Set();
  delete query.include;
  return new Set(include.split(','));
}

type Request = Parameters<Route['handle']>[0];

/** The property of a list that has its records. */
const LISTED = ['items', 'backups'];

type WithFacets = {
  facets?: Readonly<Record<string, { values: readonly { value: unknown }[] } | null>>;
};

/** A list with the values of its facets as further items: they refer to what the fields refer to. */
function withFacetValues(body: unknown): unknown {
  const { facets, ...others } = (body ?? {}) as WithFacets & Record<string, unknown>;
  const name = LISTED.find((each) => Array.isArray(others[each]));
  if (name === undefined || !facets) return body;
  const counted = Object.entries(facets).flatMap(([field, facet]) =>
    (facet?.values ?? []).map(({ value }) => ({ [field]: value })),
  );
  return { ...others, [name]: [...(others[name] as unknown[]), ...counted] };
}

/**
 * Returns the function that adds `included` to responses of a route. A single record keeps its
 * properties.
 */
export function compileInclude(route: Route, findNames: FindNames) {
  let collect: ((body: unknown) => NamedIds) | undefined;
  const schema = route.responses[200];

  function idsIn(body: unknown, wanted: ReadonlySet<string>): NamedIds {
    collect ??= compileReferences(schema ?? Type.Unknown(), route.changesOf);
    const { records, actors, accounts } = collect(withFacetValues(body));
    const isWanted = (name: string) => wanted.has(name);
    return {
      records: isWanted('labels') ? records : new Map(),
      actors: isWanted('people') ? actors : new Set(),
      accounts: isWanted('people') ? accounts : new Set(),
    };
  }

  /** Errors: `invalid_request` for a stream, `password_change_required`, those of the extras. */
  return async (
    request: Request,
    wanted: ReadonlySet<string>,
    response: HttpResponse,
  ): Promise<HttpResponse> => {
    if (response.stream) {
      response.stream.source.destroy();
      throw invalidField('query', '/include', 'stream', 'must not be sent for a stream');
    }
    const { json, body: unsent, headers, taggedAs, ...rest } = response;
    const body: unknown = json === undefined ? unsent : JSON.parse(json);
    const names = await findNames(request.caller, idsIn(body, wanted));
    const included: Record<string, unknown> = {
      ...(wanted.has('labels') && { labels: names.labels }),
      ...(wanted.has('people') && { people: names.people }),
    };
    for (const [name, { load }] of Object.entries(route.extras ?? {}))
      if (wanted.has(name)) included[name] = await load(request, body);
    const complete = { ...(body as object), included };
    // The tag of a response with names is another one than without.
    if (headers.etag !== undefined) {
      const text = JSON.stringify(complete);
      return { ...rest, headers: { ...headers, etag: etagOfText(text) }, json: text };
    }
    const tagged = taggedAs !== undefined && { taggedAs: { ...(taggedAs as object), included } };
    return { ...rest, ...tagged, headers, body: complete };
  };
}
