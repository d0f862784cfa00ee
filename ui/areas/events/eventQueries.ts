import { answer, api, type Schemas } from '../../app/api.ts';
import { listEvents, type EventsQuery } from '../../app/listEvents.ts';
import { toQuery, type ListPart, type ListSearch } from '../../parts/list/search.ts';
import { EVENT_FILTERS } from './eventFilters.ts';

export type EventItem = Schemas['Event'];

const NAMES = 'labels,people';

/** What the tail shows of the log, the newest first. */
export const readEvents = (search: ListSearch, now: Date, part: ListPart, signal: AbortSignal) => {
  const query = { ...toQuery<EventsQuery>(EVENT_FILTERS, search, now, part), include: NAMES };
  return listEvents(query, signal);
};

/** The number of events after a sequence that the filters leave. */
export const countAfter = async (
  search: ListSearch,
  now: Date,
  after: number,
  signal: AbortSignal,
) => {
  const part = { limit: 1, count: true };
  const { sort, ...query } = toQuery<EventsQuery>(EVENT_FILTERS, search, now, part);
  return (await listEvents({ ...query, after }, signal)).count ?? null;
};

export const eventQuery = (id: string) => ({
  queryKey: ['events', 'one', id],
  queryFn: ({ signal }: { signal: AbortSignal }) =>
    answer(
      api.GET('/api/events/{id}', {
        params: { path: { id }, query: { include: NAMES } },
        signal,
      }),
    ),
});
export type EventDetail = Awaited<ReturnType<ReturnType<typeof eventQuery>['queryFn']>>;
