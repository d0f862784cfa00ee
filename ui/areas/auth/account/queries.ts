import { keepPreviousData } from '@tanstack/react-query';
import { answer, api, type Schemas } from '../../../app/api.ts';
import { WARNING_DAYS } from './tokenText.ts';
import { serverNow } from '../../../parts/clock.ts';

export type TokenStatus = Schemas['TokenStatus'];

export const TOKENS_KEY = ['auth', 'tokens'] as const;
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

const PAGE_SIZE = 50;

/** The user's own tokens, page by page: readers of accounts could list those of others too. */
export const tokensQuery = (userId: string, status: TokenStatus) => ({
  queryKey: [...TOKENS_KEY, userId, status],
  queryFn: ({ signal, pageParam }: { signal: AbortSignal; pageParam: string | null }) =>
    answer(
      api.GET('/api/auth/tokens', {
        params: {
          query: {
            userId: [userId],
            status,
            limit: PAGE_SIZE,
            include: 'labels',
            ...(pageParam !== null && { cursor: pageParam }),
          },
        },
        signal,
      }),
    ),
  initialPageParam: null as string | null,
  getNextPageParam: ({ nextCursor }: { nextCursor: string | null }) => nextCursor,
  placeholderData: keepPreviousData,
});

const MAX_WARNINGS = 10;

/** Active tokens that expire soon, whatever is listed. */
export const expiringQuery = (userId: string) => ({
  queryKey: [...TOKENS_KEY, userId, 'expiring'],
  queryFn: ({ signal }: { signal: AbortSignal }) =>
    answer(
      api.GET('/api/auth/tokens', {
        params: {
          query: {
            userId: [userId],
            status: 'active',
            'expiresAt.lt': new Date(serverNow() + WARNING_DAYS * 86_400_000).toISOString(),
            sort: 'expiresAt',
            limit: MAX_WARNINGS,
          },
        },
        signal,
      }),
    ),
});
