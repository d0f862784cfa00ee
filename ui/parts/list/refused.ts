import { problemFields } from '../problems.ts';
import { activeFilters, type Filter, type ListSearch } from './search.ts';

/** A parameter of a list that the API does not accept, and why. */
export type Refused = { id: string; label: string; text: string; detail: string };

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
