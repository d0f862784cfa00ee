import { answer, api, type Schemas } from '../../app/api.ts';

export type Job = Schemas['Job'];
export type JobSummary = Schemas['JobSummary'];
export type JobType = Schemas['JobType'];

type Reading = { signal: AbortSignal };

/** A job with the names of what it refers to. */
export const jobQuery = (jobId: string) => ({
  queryKey: ['jobs', 'one', jobId],
  queryFn: ({ signal }: Reading) =>
    answer(
      api.GET('/api/jobs/{jobId}', {
        params: { path: { jobId }, query: { include: 'labels,people' } },
        signal,
      }),
    ),
});

/** Retries of a job, the newest first. */
export const retriesQuery = (jobId: string) => ({
  queryKey: ['jobs', 'retries', jobId],
  queryFn: ({ signal }: Reading) =>
    answer(api.GET('/api/jobs', { params: { query: { retryOf: [jobId], limit: 10 } }, signal })),
});

/** The job types change with the version of the service only. */
export const jobTypesQuery = {
  queryKey: ['jobs', 'types'],
  queryFn: ({ signal }: Reading) => answer(api.GET('/api/job-types', { signal })),
  staleTime: 600_000,
};
