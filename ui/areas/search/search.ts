import { keepPreviousData } from '@tanstack/react-query';
import { answer, api } from '../../app/api.ts';
import type { SearchText } from '../../app/search.ts';

/** The search parameters of the page: the text, and the kinds to search, with commas between them. */
export type SearchPageSearch = { q?: string; kinds?: string };

const KINDS = /^[a-z-]+(,[a-z-]+)*$/;
export const MAX_TEXT = 200;

export const validateSearchPage = ({ q, kinds }: SearchText): SearchPageSearch => ({
  ...(q !== undefined && { q: q.slice(0, MAX_TEXT) }),
  ...(kinds !== undefined && KINDS.test(kinds) && { kinds }),
});

/** Records of each kind: few of many kinds, and more of one. */
const FEW = 6;
const MANY = 20;

/** One line without control characters and halves of characters: what the API searches. */
export const searchable = (text: string): string =>
  text
    .toWellFormed()
    .replaceAll(/\p{Cc}+/gu, ' ')
    .trim();

export const searchQuery = ({ q = '', kinds }: SearchPageSearch) => ({
  queryKey: ['search', searchable(q), kinds ?? ''],
  queryFn: ({ signal }: { signal: AbortSignal }) =>
    answer(
      api.GET('/api/search', {
        params: {
          query: {
            q: searchable(q),
            limit: kinds === undefined ? FEW : MANY,
            include: 'labels',
            ...(kinds !== undefined && { kinds }),
          },
        },
        signal,
      }),
    ),
  enabled: searchable(q) !== '',
  placeholderData: keepPreviousData,
});
