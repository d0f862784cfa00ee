import { answer, api } from '../../app/api.ts';
import type { Found } from '../list/search.ts';
import { problemFields } from '../problems.ts';
import { recordLabel } from './recordLabel.ts';

const SHOWN = 20;

type Reading = { signal: AbortSignal };

/** Records of a resource of the inventory by a text or an id; without a text the first ones of its list. */
async function findRecords(resource: string, text: string, signal: AbortSignal): Promise<Found[]> {
  if (text === '') {
    const { items } = await answer(
      // All lists of the inventory have these parameters; the path is typed for each.
      api.GET(`/api/inventory/${resource}` as '/api/inventory/sites', {
        params: { query: { limit: SHOWN } },
        signal,
      }),
    );
    return items.map((record) => ({ id: record.id, label: recordLabel(record) }));
  }
  const query = { q: text, kinds: resource, limit: SHOWN };
  const { items } = await answer(api.GET('/api/search', { params: { query }, signal }));
  return items.map(({ id, label, description }) => ({
    id,
    label,
    detail: description === '' ? undefined : description,
  }));
}

export const recordsQuery = (resource: string, text: string) => ({
  queryKey: ['records', resource, text],
  queryFn: ({ signal }: Reading) => findRecords(resource, text, signal),
  staleTime: 10_000,
});

/** Reads one record by its id. */
async function readRecord(resource: string, id: string, signal: AbortSignal): Promise<Found> {
  // The paths of all resources have the same form; the types know each by itself.
  const path = `/api/inventory/${resource as 'sites'}/{id}` as const;
  const record = await answer(api.GET(path, { params: { path: { id } }, signal }));
  return { id, label: recordLabel(record) };
}

/** The label of one record; null if there is no such record for the user. */
export const recordQuery = (resource: string, id: string) => ({
  queryKey: ['records', 'one', resource, id],
  queryFn: ({ signal }: Reading): Promise<Found | null> =>
    readRecord(resource, id, signal).catch((error: unknown) => {
      if (problemFields(error).status === 404) return null;
      throw error;
    }),
  staleTime: 10_000,
});
