import { answer, api, type Schemas } from '../../app/api.ts';

export type Pool = Schemas['Pool'];
export type Runner = Schemas['Runner'];

type Reading = { signal: AbortSignal };

/** Runners come and go without an event. */
export const RUNNERS_MS = 10_000;

const PAGE_SIZE = 200;
/** The most runners that a page shows, of one pool or of all; it says when there are more. */
export const MAX_RUNNERS = 1_000;

/** All pools: the service answers them in one page. */
export const readPools = async (signal: AbortSignal): Promise<Pool[]> =>
  (await answer(api.GET('/api/pools', { signal }))).items;

/** The runners, of one pool or of all; at most `MAX_RUNNERS`. */
export async function readRunners(signal: AbortSignal, pool?: string): Promise<Runner[]> {
  const runners: Runner[] = [];
  let cursor: string | null = null;
  do {
    const query: { limit: number; pool?: string[]; cursor?: string } = {
      limit: PAGE_SIZE,
      ...(pool !== undefined && { pool: [pool] }),
      ...(cursor !== null && { cursor }),
    };
    const page = await answer(api.GET('/api/runners', { params: { query }, signal }));
    runners.push(...page.items);
    cursor = page.nextCursor;
  } while (cursor !== null && runners.length < MAX_RUNNERS);
  return runners;
}

/** The key of everything about a pool. */
export const poolKey = (name: string) => ['runners', 'pool', name] as const;

export const poolQuery = (name: string) => ({
  queryKey: [...poolKey(name), 'record'],
  queryFn: ({ signal }: Reading) =>
    answer(
      api.GET('/api/pools/{name}', {
        params: { path: { name }, query: { include: 'people' } },
        signal,
      }),
    ),
});

export const poolRunnersQuery = (name: string) => ({
  queryKey: [...poolKey(name), 'runners'],
  queryFn: ({ signal }: Reading) => readRunners(signal, name),
});

/** The job types of a pool, for those who may read types. */
export const poolTypesQuery = (name: string) => ({
  queryKey: [...poolKey(name), 'types'],
  queryFn: async ({ signal }: Reading) =>
    (await answer(api.GET('/api/job-types', { signal }))).items.filter(({ pools }) =>
      pools.includes(name),
    ),
});

/** How many waiting jobs the page of a pool shows. */
export const SHOWN_JOBS = 10;
/** Values of a filter that an address has space for. */
const MAX_TYPES = 50;

/** The oldest waiting jobs of these types that the user may see. */
export const queuedJobsQuery = (name: string, types: readonly string[]) => ({
  queryKey: [...poolKey(name), 'queued', types],
  queryFn: ({ signal }: Reading) =>
    answer(
      api.GET('/api/jobs', {
        params: {
          query: {
            status: ['queued'],
            type: types.slice(0, MAX_TYPES),
            sort: 'createdAt',
            limit: SHOWN_JOBS,
          },
        },
        signal,
      }),
    ),
  enabled: types.length > 0,
});

export const runnerQuery = (id: string) => ({
  queryKey: ['runners', 'one', id],
  queryFn: ({ signal }: Reading) =>
    answer(api.GET('/api/runners/{id}', { params: { path: { id } }, signal })),
  refetchInterval: RUNNERS_MS,
});
