import { answer, api } from '../../../app/api.ts';

export const SESSIONS_KEY = ['auth', 'sessions'] as const;

/** The summary with the names of what the roles are at. */
export const namedSummary = {
  queryKey: ['auth', 'summary'],
  queryFn: ({ signal }: { signal: AbortSignal }) =>
    answer(api.GET('/api/rbac/summary', { params: { query: { include: 'labels' } }, signal })),
} as const;

/** At most 100: an older session ends when there are more. */
export const sessionsQuery = {
  queryKey: SESSIONS_KEY,
  queryFn: ({ signal }: { signal: AbortSignal }) =>
    answer(
      api.GET('/api/auth/sessions', {
        params: { query: { limit: 100, sort: '-refreshedAt', include: 'labels' } },
        signal,
      }),
    ),
} as const;
