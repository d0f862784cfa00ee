import { useQuery } from '@tanstack/react-query';
import { answer, api } from '../api.ts';
import { useLiveRefresh } from '../live.ts';

const QUERY_KEY = ['approvals', 'pending'] as const;

/** The number of requests that wait for a decision of the user. */
export function usePendingApprovals(): number {
  useLiveRefresh(['workflow.*'], QUERY_KEY);
  const { data } = useQuery({
    queryKey: QUERY_KEY,
    queryFn: ({ signal }) =>
      answer(
        api.GET('/api/workflows', {
          params: { query: { assignedToMe: true, status: ['pending'], limit: 1 } },
          signal,
        }),
      ),
    staleTime: 60_000,
  });
  return data?.counts.pending ?? 0;
}
