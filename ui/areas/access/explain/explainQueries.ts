import { answer, api, type Schemas } from '../../../app/api.ts';

export type Explanation = Schemas['Explanation'];
export type ExplainedGrant = Schemas['ExplainedGrant'];
export type Permission = Schemas['Permission'];

type Reading = { signal: AbortSignal };

export type Question = {
  userId: string;
  permission: Permission;
  jobType?: string;
  tenantId?: string;
  siteId?: string;
  deviceId?: string;
};

/** Whether an account has a permission somewhere, and by which grants. */
export const explainQuery = (question: Question) => ({
  queryKey: ['access', 'grants', 'explain', question],
  queryFn: ({ signal }: Reading) =>
    answer(
      api.GET('/api/rbac/explain', {
        params: { query: { ...question, include: 'labels,people' } },
        signal,
      }),
    ),
});

/** The names of all job types, for those who may read them. */
export const jobTypeNamesQuery = {
  queryKey: ['access', 'job-type-names'],
  queryFn: async ({ signal }: Reading) =>
    (await answer(api.GET('/api/job-types', { signal }))).items.map(({ name }) => name),
  staleTime: 60_000,
  retry: false,
};
