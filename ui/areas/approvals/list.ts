import { answer, api } from '../../app/api.ts';
import { toQuery, type Filter, type ListPart, type ListSearch } from '../../parts/list/search.ts';
import type { paths } from '../../app/schema.d.ts';

type Query = NonNullable<paths['/api/workflows']['get']['parameters']['query']>;
/** The fields of filters: those of times are sent with an operator. */
type Field = Extract<keyof Query, string> | 'createdAt';

/** Which requests are shown: those that wait for the reader, the reader's own, or all visible ones. */
export const VIEWS = ['decide', 'mine', 'all'] as const;
export type View = (typeof VIEWS)[number];

const findSites = async (text: string, signal: AbortSignal) => {
  const { items } = await answer(
    api.GET('/api/search', { params: { query: { q: text, kinds: 'sites', limit: 20 } }, signal }),
  );
  return items.map(({ id, label, description }) => ({ id, label, detail: description }));
};

const STATUS = {
  id: 'status',
  label: 'Status',
  kind: 'choice',
  inline: true,
  facet: true,
  choices: [
    { value: 'pending' },
    { value: 'approved' },
    { value: 'rejected' },
    { value: 'expired' },
    { value: 'cancelled', label: 'Cancelled' },
  ],
} as const;

const OTHERS: readonly Filter<Field>[] = [
  {
    id: 'execution',
    label: 'Execution',
    kind: 'choice',
    facet: true,
    choices: [
      { value: 'queued', label: 'Waits' },
      { value: 'running' },
      { value: 'succeeded' },
      { value: 'failed' },
      { value: 'stale' },
    ],
  },
  { id: 'type', label: 'Kind', kind: 'choice', facet: true },
  { id: 'siteId', label: 'Site', kind: 'reference', of: 'sites', find: findSites },
  { id: 'jobType', label: 'Job type', kind: 'choice', facet: true },
  { id: 'createdAt', label: 'Asked', kind: 'time' },
];

/** Filters of the list. All requests that wait for a decision are pending, so that view has no status. */
export const filtersOf = (view: View) =>
  view === 'decide' ? OTHERS.slice(1) : [STATUS, ...OTHERS];

/** The view of an address; undefined without one, or if there is none of that name. */
export const viewIn = ({ view }: ListSearch): View | undefined =>
  VIEWS.find((each) => each === view);

const VIEW_QUERIES: Readonly<Record<View, Partial<Query>>> = {
  decide: { assignedToMe: true, status: ['pending'] },
  mine: { requestedByMe: true },
  all: {},
};

/** Reads a page of the list. */
export const readRequests = (
  view: View,
  search: ListSearch,
  part: ListPart,
  signal: AbortSignal,
  now: Date,
) =>
  answer(
    api.GET('/api/workflows', {
      params: {
        query: {
          ...toQuery<Query>(filtersOf(view), search, now, part),
          ...VIEW_QUERIES[view],
          include: 'labels,people',
        },
      },
      signal,
    }),
  );
