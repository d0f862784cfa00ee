import { answer, api, type Schemas } from '../../app/api.ts';

export type ApprovalSummary = Schemas['ApprovalSummary'];
export type ApprovalRequest = Schemas['ApprovalRequest'];

/** Everything that a decision on a request needs. */
export const requestQuery = (id: string) =>
  ({
    queryKey: ['approvals', 'request', id],
    queryFn: ({ signal }: { signal: AbortSignal }) =>
      answer(
        api.GET('/api/workflows/{id}', {
          params: { path: { id }, query: { include: 'labels,people' } },
          signal,
        }),
      ),
  }) as const;
