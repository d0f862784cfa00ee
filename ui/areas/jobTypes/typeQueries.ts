import { answer, api, type Schemas } from '../../app/api.ts';

export type JobType = Schemas['JobType'];
export type JobTypeWithVersions = Schemas['JobTypeWithVersions'];

type Reading = { signal: AbortSignal };

/** Runners come and go without an event. */
const RUNNERS_MS = 10_000;

/** A type with what runners have announced. */
export const typeQuery = (name: string) => ({
  queryKey: ['jobTypes', 'one', name],
  queryFn: ({ signal }: Reading) =>
    answer(
      api.GET('/api/job-types/{name}', {
        params: { path: { name }, query: { include: 'people' } },
        signal,
      }),
    ),
  refetchInterval: RUNNERS_MS,
});
