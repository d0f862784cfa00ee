import { answer, api, type Schemas } from '../../app/api.ts';

export type Job = Schemas['Job'];
export type JobSummary = Schemas['JobSummary'];
export type JobType = Schemas['JobType'];
export type Artifact = Schemas['JobArtifact'];

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

/** The files that a job has left: with its end, they are read once more. */
export const artifactsQuery = (jobId: string, isEnded: boolean) => ({
  queryKey: ['jobs', 'artifacts', jobId, isEnded],
  queryFn: ({ signal }: Reading) =>
    answer(api.GET('/api/jobs/{jobId}/artifacts', { params: { path: { jobId } }, signal })),
});

/** Retries of a job, the newest first. */
export const retriesQuery = (jobId: string) => ({
  queryKey: ['jobs', 'retries', jobId],
  queryFn: ({ signal }: Reading) =>
    answer(api.GET('/api/jobs', { params: { query: { retryOf: [jobId], limit: 10 } }, signal })),
});
