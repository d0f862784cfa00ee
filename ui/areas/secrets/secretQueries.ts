import { answer, api, type Schemas } from '../../app/api.ts';
import type { paths } from '../../app/schema.d.ts';

export type Secret = Schemas['Secret'];
export type SecretsQuery = NonNullable<paths['/api/secrets']['get']['parameters']['query']>;

type Reading = { signal: AbortSignal };

/** A secret as callers see it: without its value, which no answer has. */
export const secretQuery = (id: string) => ({
  queryKey: ['secrets', 'one', id],
  queryFn: ({ signal }: Reading) =>
    answer(
      api.GET('/api/secrets/{id}', {
        params: { path: { id }, query: { include: 'labels,people' } },
        signal,
      }),
    ),
});

const ENTRIES = 20;

/** The newest entries of the audit log about a secret: its changes, and the attempts that got it. */
export const secretHistoryQuery = (id: string) => ({
  queryKey: ['secrets', 'history', id],
  queryFn: ({ signal }: Reading) =>
    answer(
      api.GET('/api/audit', {
        params: { query: { subjectId: [id], limit: ENTRIES, include: 'labels,people' } },
        signal,
      }),
    ),
});

/** The pools that can be chosen, for those who may read them. */
export const poolNamesQuery = {
  queryKey: ['secrets', 'pools'],
  queryFn: async ({ signal }: Reading) =>
    (await answer(api.GET('/api/pools', { signal }))).items.map(({ name }) => name),
  staleTime: 10_000,
};
