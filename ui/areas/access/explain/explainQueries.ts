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
