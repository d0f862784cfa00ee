import { answer, api, Problem } from '../../app/api.ts';
import { queryClient } from '../../app/queryClient.ts';
import { requestQuery, type ApprovalRequest } from '../../parts/approvals/requestQuery.ts';

/** The state of the bound job; the page of the job has the rest. */
export const jobQuery = (jobId: string) =>
  ({
    queryKey: ['approvals', 'job', jobId],
    queryFn: ({ signal }: { signal: AbortSignal }) =>
      answer(api.GET('/api/jobs/{jobId}', { params: { path: { jobId } }, signal })),
  }) as const;

export type Decision = {
  verb: 'approve' | 'reject';
  comment: string;
  /** The hash of the content that the page shows: nothing else can be decided. */
  contentHash: string;
  /** The same for each attempt at the same decision. */
  key: string;
};

const written = (comment: string) => (comment.trim() === '' ? {} : { comment: comment.trim() });

export const decide = (id: string, { verb, comment, contentHash, key }: Decision) =>
  answer(
    api.POST(verb === 'approve' ? '/api/workflows/{id}/approve' : '/api/workflows/{id}/reject', {
      params: { path: { id }, header: { 'Idempotency-Key': key } },
      body: { ...written(comment), contentHash },
    }),
  );

export const addComment = (id: string, text: string, key: string) =>
  answer(
    api.POST('/api/workflows/{id}/comments', {
      params: { path: { id }, header: { 'Idempotency-Key': key } },
      body: { text: text.trim() },
    }),
  );

export const cancelRequest = (id: string, comment: string, key: string) =>
  answer(
    api.POST('/api/workflows/{id}/cancel', {
      params: { path: { id }, header: { 'Idempotency-Key': key } },
      body: written(comment),
    }),
  );

/** Shows an answer, and reads again what answers to actions leave out: names, and what blocks it. */
export function showAnswer(request: ApprovalRequest): void {
  const { queryKey } = requestQuery(request.id);
  queryClient.setQueryData<ApprovalRequest>(queryKey, (old) => ({
    ...request,
    blocker: old?.blocker ?? null,
    ...(old?.included && { included: old.included }),
  }));
  void queryClient.invalidateQueries({ queryKey: ['approvals'] });
}

/** True if an action failed since the request is no longer what the page shows. */
export const isOvertaken = (error: unknown): boolean =>
  error instanceof Problem && (error.status === 409 || error.status === 412 || error.status === 0);
