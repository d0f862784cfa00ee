import { answer, api, type Schemas } from '../../../app/api.ts';
import type { paths } from '../../../app/schema.d.ts';

export type Import = Schemas['Import'];
export type ImportRow = Schemas['ImportRow'];
export type ImportsQuery = NonNullable<
  paths['/api/inventory/imports']['get']['parameters']['query']
>;

type Reading = { signal: AbortSignal };

/** The key of everything that is read of imports. */
export const IMPORTS = ['inventory', 'imports'] as const;

export const importKey = (id: string) => [...IMPORTS, 'of', id] as const;

const POLL_MS = 1_000;

export const isRunning = ({ status }: Pick<Import, 'status'>): boolean =>
  status === 'queued' || status === 'running';

/** An import, which is read again while it runs. */
export const importQuery = (id: string) => ({
  queryKey: [...importKey(id), 'record'],
  queryFn: ({ signal }: Reading) =>
    answer(
      api.GET('/api/inventory/imports/{id}', {
        params: { path: { id }, query: { include: 'labels,people' } },
        signal,
      }),
    ),
  refetchInterval: ({ state }: { state: { data?: Import | undefined } }) =>
    state.data && isRunning(state.data) ? POLL_MS : false,
});

/** The newest import of the rows of a dry run, if there is one. */
export const appliedQuery = (dryRunId: string) => ({
  queryKey: [...importKey(dryRunId), 'applied'],
  queryFn: async ({ signal }: Reading) => {
    const query = { dryRunId: [dryRunId], limit: 1 };
    const page = await answer(api.GET('/api/inventory/imports', { params: { query }, signal }));
    return page.items[0] ?? null;
  },
});

export const readImports = (query: Partial<ImportsQuery>, signal: AbortSignal) =>
  answer(
    api.GET('/api/inventory/imports', {
      params: { query: { ...query, include: 'labels,people' } },
      signal,
    }),
  );
