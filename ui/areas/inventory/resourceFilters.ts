import { labelOfField } from '../../parts/format.ts';
import { toQuery, type Filter, type ListPart, type ListSearch } from '../../parts/list/search.ts';
import { recordsQuery } from '../../parts/records/findRecords.ts';
import type { Resource, ResourceField } from './inventoryQueries.ts';

const BOOLEANS = [
  { value: 'true', label: 'Yes' },
  { value: 'false', label: 'No' },
] as const;

const finder =
  (resource: string) =>
  (text: string, signal: AbortSignal): ReturnType<ReturnType<typeof recordsQuery>['queryFn']> =>
    recordsQuery(resource, text).queryFn({ signal });

/** Fields with one of a few values: their counts are shown. */
function choiceFilter(resource: Resource, { name, choices }: ResourceField): Filter {
  return {
    id: name,
    label: labelOfField(name),
    kind: 'choice',
    facet: resource.facets.includes(name),
    inline: name === 'status',
    choices: choices ? choices.map((value) => ({ value })) : BOOLEANS,
  };
}

/** The filter of a field; none for texts, which the search finds, and for numbers. */
function filterOf(resource: Resource, field: ResourceField): Filter[] {
  const { name, type, choices, reference } = field;
  if (!resource.filters.includes(name)) return [];
  if (choices ? choices.length <= MOST_CHOICES : type === 'boolean')
    return [choiceFilter(resource, field)];
  if (reference === null) return [];
  const label = labelOfField(name);
  return [{ id: name, label, kind: 'reference', of: reference, find: finder(reference) }];
}

/** Longer lists of values are no filter that people read. */
const MOST_CHOICES = 20;

function customFilter({ name, type, choices }: Resource['customFields'][number]): Filter {
  const id = `customFields.${name}`;
  const isChosen = type === 'choice' || type === 'choices';
  if (isChosen)
    return { id, label: name, kind: 'choice', choices: choices.map((value) => ({ value })) };
  if (type === 'boolean') return { id, label: name, kind: 'choice', choices: BOOLEANS };
  return { id, label: name, kind: 'text' };
}

const SEARCH_TEXT = 'At least three characters';

/** Fields that links filter by and that are not offered, such as a name or a position. */
const linkedFilters = ({ filters }: Resource, offered: readonly Filter[], search: ListSearch) => {
  const known = new Set(offered.map(({ id }) => id));
  return filters.flatMap((id): Filter[] =>
    search[id] === undefined || known.has(id)
      ? []
      : [{ id, label: labelOfField(id), kind: 'text' }],
  );
};

/** The filters of the list of a resource, made from its description; with those of the address that it can filter by. */
export function filtersOf(resource: Resource, search: ListSearch): Filter[] {
  const offered = offeredFilters(resource);
  return [...offered, ...linkedFilters(resource, offered, search)];
}

function offeredFilters(resource: Resource): Filter[] {
  const has = (name: string) => resource.filters.includes(name);
  const fields = resource.fields.flatMap((field) => filterOf(resource, field));
  return [
    ...fields.filter(({ id }) => id === 'status'),
    ...(has('q')
      ? [{ id: 'q', label: 'Search', kind: 'text', example: SEARCH_TEXT } as const]
      : []),
    ...(has('within')
      ? [{ id: 'within', label: 'Within', kind: 'text', example: '10.0.0.0/8' } as const]
      : []),
    ...(has('contains')
      ? [{ id: 'contains', label: 'Contains', kind: 'text', example: '10.1.2.3' } as const]
      : []),
    ...fields.filter(({ id }) => id !== 'status'),
    ...(has('tag')
      ? [{ id: 'tag', label: 'Tag', kind: 'reference', of: 'tags', find: finder('tags') } as const]
      : []),
    ...(has('customFields') ? resource.customFields.map(customFilter) : []),
    ...(has('createdAt.gte') ? [{ id: 'createdAt', label: 'Created', kind: 'time' } as const] : []),
    ...(has('updatedAt.gte') ? [{ id: 'updatedAt', label: 'Changed', kind: 'time' } as const] : []),
  ];
}

/** The query of a list of any resource, for a part of what an address filters and sorts by. */
export const listQuery = (
  filters: readonly Filter[],
  search: ListSearch,
  now: Date,
  part: ListPart,
): Readonly<Record<string, unknown>> =>
  toQuery<Record<string, unknown>>(filters, search, now, part);
