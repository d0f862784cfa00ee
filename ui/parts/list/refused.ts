import { problemFields } from '../problems.ts';
import { activeFilters, unknownIn, type Filter, type ListSearch, type Refused } from './search.ts';

/** The name of a parameter, and what follows it: `/customFields/zone/0` is `customFields.zone.0`. */
const nameIn = (pointer: string): string => pointer.split('/').slice(1).join('.');

const isAbout = (pointer: string, id: string): boolean => {
  const name = nameIn(pointer);
  return name === id || name.startsWith(`${id}.`);
};

/** The filters, and the order, that an answer refuses; none if it is about something else. */
export function refusedIn(
  filters: readonly Filter[],
  search: ListSearch,
  problem: unknown,
): Refused[] {
  if (problem === null || problem === undefined) return [];
  const { status, errors } = problemFields(problem);
  if (status !== 400) return [];
  const asked = [
    ...activeFilters(filters, search),
    ...(search.sort === undefined ? [] : [{ id: 'sort', label: 'Order' }]),
  ];
  return asked.flatMap(({ id, label }) => {
    const own = errors.filter(({ pointer }) => isAbout(pointer, id));
    const detail = [...new Set(own.map((error) => error.detail))].join('; ');
    return own.length === 0 ? [] : [{ id, label, text: search[id] ?? '', detail }];
  });
}

/** What a list cannot filter or sort by, as the service says or else as the list knows. `others` are no filters. */
export function refusedOf(
  filters: readonly Filter[],
  search: ListSearch,
  problem: unknown,
  others: readonly string[] = [],
): Refused[] {
  const refused = refusedIn(filters, search, problem);
  const said = new Set(refused.map(({ id }) => id));
  return [...refused, ...unknownIn(filters, search, others).filter(({ id }) => !said.has(id))];
}
