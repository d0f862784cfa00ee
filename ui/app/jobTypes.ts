import { useQuery } from '@tanstack/react-query';
import { answer, api } from './api.ts';
import { useLiveRefresh } from './live.ts';

/** All job types. Runners announce them at any time. */
const jobTypesQuery = {
  queryKey: ['jobTypes', 'all'],
  queryFn: ({ signal }: { signal: AbortSignal }) => answer(api.GET('/api/job-types', { signal })),
  staleTime: 10_000,
};

/** All job types, as they are now. */
export function useJobTypes() {
  useLiveRefresh(['job-type.*'], jobTypesQuery.queryKey);
  return useQuery(jobTypesQuery);
}
