import { answer, api, type Schemas } from './api.ts';
import type { paths } from './schema.d.ts';

export type EventsQuery = NonNullable<paths['/api/events']['get']['parameters']['query']>;

/** A page of the event log. Only with `follow` would it be a stream. */
export async function listEvents(
  query: EventsQuery,
  signal: AbortSignal,
): Promise<Schemas['EventList']> {
  const page = await answer(api.GET('/api/events', { params: { query }, signal }));
  if (typeof page === 'string') throw new Error('The events came as a stream');
  return page;
}
