import { useQueries, useQuery } from '@tanstack/react-query';
import {
  requestQuery,
  type ApprovalRequest,
  type ApprovalSummary,
} from '../../parts/approvals/requestQuery.ts';
import { ownFailedQuery, ownPendingQuery, toDecideQuery } from './queries.ts';

/** What a request would do, and what stops it. */
const useDetails = (requests: readonly ApprovalSummary[]): ReadonlyMap<string, ApprovalRequest> => {
  const found = useQueries({
    queries: requests.map(({ id }) => ({
      ...requestQuery(id),
      staleTime: 60_000,
      // The line is an extra: without it the request is shown by its title.
      retry: false,
    })),
  });
  return new Map(found.flatMap(({ data }) => (data ? [[data.id, data] as const] : [])));
};

/** Requests that wait for the reader, and the reader's own that go wrong. */
export function useNeedsYou(isAllowed: boolean) {
  const toDecide = useQuery({ ...toDecideQuery, enabled: isAllowed });
  const ownFailed = useQuery({ ...ownFailedQuery, enabled: isAllowed });
  const ownPending = useQuery({ ...ownPendingQuery, enabled: isAllowed });
  const decide = toDecide.data?.items ?? [];
  const pending = ownPending.data?.items ?? [];
  const details = useDetails([...decide, ...pending]);
  const blocked = pending.filter(({ id }) => {
    const blocker = details.get(id)?.blocker;
    return blocker != null && blocker.code !== 'not_evaluated';
  });
  const reads = [toDecide, ownFailed, ownPending];
  return {
    decide,
    total: toDecide.data?.counts.pending ?? 0,
    own: [...(ownFailed.data?.items ?? []), ...blocked],
    hasMoreFailed: ownFailed.data?.nextCursor != null,
    details,
    names: toDecide.data?.included,
    reads,
    isRead: reads.every(({ isSuccess }) => isSuccess),
  };
}

export type NeedsYou = ReturnType<typeof useNeedsYou>;
