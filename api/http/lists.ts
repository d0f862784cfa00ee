import type { Static, TObject, TSchema } from 'typebox';
import { assertDefined } from '../../domain/shared/assert.ts';
import {
  type FilterValue,
  type ListAnswer,
  type ListCondition,
  type ListField,
  type ListRequest,
  type ListSort,
} from '../../domain/shared/lists.ts';
import { unicodeForms } from '../../domain/shared/unicodeForms.ts';
import type { IdKind } from '../../platform/ids.ts';
import { RANGE_OPERATORS, valueOf, type FieldDeclaration } from './listFields.ts';
import { cursorScope, decodeKey, encodeKey } from './listCursor.ts';
import {
  defaultSortOf,
  filterParameters,
  ID_TIME,
  listQuery,
  listResponseSchema,
} from './listSchemas.ts';
import { parseTime, parseTimeBound } from './queryTime.ts';
import { DEFAULT_LIMIT, idPatternOf } from './pagination.ts';
import { presentAll } from './presentAll.ts';
import { ok, type HttpResponse } from './response.ts';

type Properties = Record<string, TSchema>;

export type ListDeclaration<O extends Properties> = {
  /** A name that only this list has, so that cursors of other lists are rejected. */
  name: string;
  /** The kind or the pattern of the ids of its records. */
  id: IdKind | RegExp;
  /** The schema of a record, and the title of the schema of the list. */
  item: TSchema;
  title: string;
  fields: Readonly<Record<string, FieldDeclaration>>;
  /** Filters that are more than a comparison with a field. */
  own?: O;
  /** The time that ids start with, `createdAt` by default; null if the list cannot sort by it. */
  idTime?: string | null;
  /** The order without `sort`, if it is not newest first. */
  defaultSort?: string;
  /** False if callers choose the ids: they do not start with a time. */
  idsByTime?: boolean;
  /** Properties of the response besides those of every list. */
  more?: Properties;
  /** Filters of its own that are another name of one of a field: `createdAfter`. */
  aliases?: Readonly<Record<string, string>>;
};

/** The query of a list after its check. */
type Query = Record<string, unknown> & {
  limit: number;
  cursor?: string;
  sort: string;
  count?: boolean;
  facets?: string[];
  fields?: string[];
};

type OwnFilters<O extends Properties> = Static<TObject<O>>;

type Load<O extends Properties, T> = (
  request: ListRequest,
  own: OwnFilters<O>,
) => Promise<ListAnswer<T>>;

/** Makes what callers see of a record. */
type Present<T> = (item: T) => object | Promise<object>;

type ListView = Omit<ListAnswer<object>, 'next'> & { nextCursor: string | null };

/** Makes the parts of the route of a list from its declaration. */
export function defineList<O extends Properties>(declaration: ListDeclaration<O>) {
  const { name, fields } = declaration;
  const defaultSort = defaultSortOf(declaration);
  const idPattern = idPatternOf(declaration.id);

  /** Converts a query that was checked. Error: `invalid_request`. */
  function requestFrom(query: Query): ListRequest {
    const sort = sortFrom(declaration, query.sort);
    return {
      where: conditionsFrom(declaration, query),
      sort,
      after: decodeKey(cursorScope(name, query), query.cursor, idPattern, sort),
      limit: query.limit,
      count: query.count ?? false,
      facets: (query.facets ?? []).map((facet) => listField(fields, facet)),
    };
  }

  /** One page with what is counted, as a response shows it. Error: `invalid_request`. */
  async function page<T>(
    values: Partial<Query>,
    load: Load<O, T>,
    present: Present<T>,
  ): Promise<ListView> {
    const query: Query = { limit: DEFAULT_LIMIT, sort: defaultSort, ...values };
    const answer = await load(requestFrom(query), query as unknown as OwnFilters<O>);
    const { items, next, count, facets } = answer;
    return {
      items: await presentAll(items, async (item) => pick(await present(item), query.fields)),
      nextCursor: next && encodeKey(cursorScope(name, query), next),
      ...(count !== undefined && { count }),
      ...(facets !== undefined && { facets }),
    };
  }

  return {
    query: listQuery(declaration),
    /** The parameters that choose the records. */
    filters: filterParameters(declaration),
    schema: listResponseSchema(declaration),
    /** The conditions of a query on the fields. Error: `invalid_request`. */
    conditionsFrom: (query: Record<string, unknown>) => conditionsFrom(declaration, query),
    /** The order that a query asks for, or that of the list. */
    sortFrom: (sort: string | undefined) => sortFrom(declaration, sort ?? defaultSort),
    page,
    /**
     * Answers a query. `extra` makes properties of the response besides those of every list. Error:
     * `invalid_request`.
     */
    async respond<T, A extends ListAnswer<T>>(
      query: object,
      load: (request: ListRequest, own: OwnFilters<O>) => Promise<A & ListAnswer<T>>,
      present: Present<T>,
      extra: (answer: A) => object = () => ({}),
    ): Promise<HttpResponse> {
      const loaded: A[] = [];
      const view = await page(
        query as Query,
        async (request, own) => {
          const answer = await load(request, own);
          loaded.push(answer);
          return answer;
        },
        present,
      );
      const response = ok({ ...view, ...Object.assign({}, ...loaded.map(extra)) });
      return 'fields' in query ? { ...response, choosesFields: true } : response;
    },
  };
}

const pick = (view: object, fields: readonly string[] | undefined): object =>
  fields
    ? Object.fromEntries(
        Object.entries(view).filter(([name]) => name === 'id' || fields.includes(name)),
      )
    : view;

function listField(fields: Readonly<Record<string, FieldDeclaration>>, name: string): ListField {
  const { kind, nullable } = assertDefined(fields[name], `field ${name} of a list`);
  return { field: name, kind, nullable };
}

function sortFrom(
  {
    fields,
    idTime = ID_TIME,
    idsByTime = true,
  }: Pick<ListDeclaration<Properties>, 'fields' | 'idTime' | 'idsByTime'>,
  by: string,
): ListSort | undefined {
  const descending = by.startsWith('-');
  const name = by.replace(/^-/, '');
  if (name === idTime && idsByTime)
    return descending ? undefined : { field: 'id', kind: 'text', nullable: false, descending };
  return { ...listField(fields, name), descending };
}

function conditionsFrom(
  { fields, aliases = {} }: Pick<ListDeclaration<Properties>, 'fields' | 'aliases'>,
  query: Record<string, unknown>,
): ListCondition[] {
  const conditions = conditionsOn(fields, query);
  for (const [alias, parameter] of Object.entries(aliases)) {
    if (query[alias] === undefined) continue;
    if (typeof query[alias] === 'string' && fields[parameter.split('.')[0] ?? '']?.kind === 'time')
      parseTime(alias, query[alias]);
    conditions.push(...conditionsOn(fields, { [parameter]: query[alias] }));
  }
  return conditions;
}

const valuesOfText = (value: FilterValue): FilterValue[] =>
  typeof value === 'string' ? unicodeForms(value) : [value];

function conditionsOn(
  fields: Readonly<Record<string, FieldDeclaration>>,
  values: Record<string, unknown>,
): ListCondition[] {
  return Object.entries(fields).flatMap(([name, field]) => {
    // The list may have a filter of its own with this name.
    if (!field.filter) return [];
    const base = listField(fields, name);
    const valuesOf = (parameter: string) =>
      [values[parameter] ?? []]
        .flat()
        .flatMap((value) => valuesOfText(valueOf(field, value, parameter)));
    const conditions: ListCondition[] = [];
    const equal = field.kind === 'time' ? [] : valuesOf(name);
    if (equal.length > 0) conditions.push({ ...base, operator: 'in', values: equal });
    const excluded = valuesOf(`${name}.not`);
    if (excluded.length > 0)
      conditions.push({
        ...base,
        operator: 'not',
        values: excluded,
        ...othersThan(field, excluded),
      });
    for (const operator of RANGE_OPERATORS) {
      const parameter = `${name}.${operator}`;
      const bound = values[parameter];
      if (bound === undefined) continue;
      const value =
        field.kind === 'time'
          ? parseTimeBound(parameter, bound as string, operator).toISOString()
          : valueOf(field, bound, parameter);
      conditions.push({ ...base, operator, values: [value] });
    }
    return conditions;
  });
}

function othersThan(
  { choices, nullable }: FieldDeclaration,
  excluded: readonly unknown[],
): Pick<ListCondition, 'others'> {
  if (!choices) return {};
  const all = [...choices, ...(nullable ? [null] : [])];
  return { others: all.filter((choice) => !excluded.includes(choice)) };
}
