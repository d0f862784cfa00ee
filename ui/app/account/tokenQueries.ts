import { keepPreviousData } from '@tanstack/react-query';
import { DAY_MS } from '../../../domain/shared/durations.ts';
import { serverNow } from '../../parts/clock.ts';
import { answer, api, type Schemas } from '../api.ts';
import { WARNING_DAYS } from './tokenText.ts';

export type TokenStatus = Schemas['TokenStatus'];

export const TOKENS_KEY = ['auth', 'tokens'] as const;

/** One token, with names instead of ids. */
export const tokenQuery = (id: string) => ({
  queryKey: [...TOKENS_KEY, 'one', id],
  queryFn: ({ signal }: { signal: AbortSignal }) =>
    answer(
      api.GET('/api/auth/tokens/{id}', {
        params: { path: { id }, query: { include: 'labels,people' } },
        signal,
      }),
    ),
});

const PAGE_SIZE = 50;

/** The tokens of a user or service account, page by page. */
export const tokensQuery = (userId: string, status: TokenStatus) => ({
  queryKey: [...TOKENS_KEY, userId, status],
  queryFn: ({ signal, pageParam }: { signal: AbortSignal; pageParam: string | null }) =>
    answer(
      api.GET('/api/auth/tokens', {
        params: {
          query: {
            userId: [userId],
            status: [status],
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
            status: ['active'],
            'expiresAt.lt': new Date(serverNow() + WARNING_DAYS * DAY_MS).toISOString(),
            sort: 'expiresAt',
            limit: MAX_WARNINGS,
          },
        },
        signal,
      }),
    ),
});
