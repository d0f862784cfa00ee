import type { Found } from '../parts/list/search.ts';
import { answer, api, type Schemas } from './api.ts';
import { queryClient } from './queryClient.ts';

export type EventType = Schemas['EventTypeDescription'];

/** The catalogue of event types: it changes with the version of the server only. */
export const eventTypesQuery = {
  queryKey: ['event-types'],
  queryFn: async ({ signal }: { signal: AbortSignal }): Promise<readonly EventType[]> =>
    (await answer(api.GET('/api/event-types', { signal }))).items,
  staleTime: Infinity,
};

/** Types whose name or summary has all words of a text. */
export function matchingTypes(types: readonly EventType[], text: string): EventType[] {
  const words = text.toLowerCase().split(/\s+/).filter(Boolean);
  return types.filter(({ type, summary }) => {
    const all = `${type} ${summary}`.toLowerCase();
    return words.every((word) => all.includes(word));
  });
}

const FOUND = 12;

/** Event types by name or summary, for filters. */
export async function findEventTypes(text: string): Promise<Found[]> {
  const types = await queryClient.query(eventTypesQuery);
  return matchingTypes(types, text)
    .slice(0, FOUND)
    .map(({ type }) => ({ id: type, label: type }));
}
