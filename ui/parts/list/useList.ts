import {
  hashKey,
  keepPreviousData,
  useInfiniteQuery,
  useQuery,
  useQueryClient,
} from '@tanstack/react-query';
import { useCallback, useMemo, useState, useSyncExternalStore } from 'react';
import { localNow, serverNow } from '../clock.ts';
import { mergeNames, type Names } from '../names.ts';
import { followOutdated, isOutdated } from './outdated.ts';
import type { ListPart } from './search.ts';

export type ListCount = { value: number; exact: boolean };

export type Facet = {
  values: readonly { value: string | number | boolean | null; count: number }[];
  exact: boolean;
  others: number;
};

/** What a list operation of the API returns. */
export type ListAnswer<Row> = {
  items: readonly Row[];
  nextCursor: string | null;
  count?: ListCount | null | undefined;
  facets?: Readonly<Record<string, Facet | null | undefined>> | undefined;
  included?: Names | undefined;
};

type Options<Row> = {
  /** Area, list and filters: what distinguishes it from other lists. */
  queryKey: readonly unknown[];
  /**
   * Reads a part of the list. `now` is the same for all pages of it: a range such as the last 24 hours
   * must not move between two pages, since a cursor belongs to its filter.
   */
  read: (part: ListPart, signal: AbortSignal, now: Date) => Promise<ListAnswer<Row>>;
  /** Asks for the number of records. Default: true. */
  counted?: boolean | undefined;
  enabled?: boolean | undefined;
};

export type List<Row> = {
  /** Undefined until they are read for the first time. */
  rows: readonly Row[] | undefined;
  names: Names;
  count: ListCount | undefined;
  facets: Readonly<Record<string, Facet | null | undefined>>;
  /** Counts by these fields too. */
  wantFacets: (fields: readonly string[]) => void;
  loading: boolean;
  error: unknown;
  hasMore: boolean;
  loadMore: () => void;
  /** Repeats what has failed. */
  retry: () => void;
  /** Reads the list again from its start. */
  refresh: () => void;
  /** Records have changed, and the list is too long to be read again without being asked to. */
  isOutdated: boolean;
};

/** Where a page starts, and the time at which the first one was read. */
type PageParam = { cursor?: string; now?: number };

const FIRST_PAGE: PageParam = {};

const PAGE_SIZE = 100;
/** Longer lists are not read again by themselves: each page is a request. */
const MAX_REFRESHED_PAGES = 4;

/** A long list that is shown again after a longer time may have changed: no events were followed for it. */
const FRESH_MS = 5_000;

const NO_FACETS: Readonly<Record<string, Facet | null | undefined>> = {};

/** True when a long list is known to be old. */
function useIsOutdated(queryKey: readonly unknown[]): boolean {
  const cache = useQueryClient().getQueryCache();
  const hash = hashKey(queryKey);
  const subscribe = useCallback(
    (onChange: () => void) => {
      const old = { pages: MAX_REFRESHED_PAGES, before: localNow() - FRESH_MS };
      return followOutdated(cache, hash, old, onChange);
    },
    [cache, hash],
  );
  return useSyncExternalStore(subscribe, () => isOutdated(cache, hash));
}

function useSummary<Row>({ queryKey, read, counted = true, enabled = true }: Options<Row>) {
  const [fields, setFields] = useState<readonly string[]>([]);
  const summary = useQuery({
    queryKey: [...queryKey, 'summary', counted, fields],
    queryFn: ({ signal }) =>
      read(
        { limit: 1, count: counted, ...(fields.length > 0 && { facets: fields }) },
        signal,
        new Date(serverNow()),
      ),
    placeholderData: keepPreviousData,
    enabled: enabled && (counted || fields.length > 0),
    refetchOnWindowFocus: false,
    // A count is no reason for a message: the list says it, if nothing can be read.
    retry: 1,
  });
  const wantFacets = useCallback(
    (wanted: readonly string[]) =>
      setFields((old) => {
        const all = [...new Set([...old, ...wanted])].sort();
        return all.length === old.length ? old : all;
      }),
    [],
  );
  return { data: summary.data, wantFacets };
}

/**
 * Reads a list page by page as its end comes into view, and counts it. Old rows stay while others are
 * read, also those of another filter.
 */
export function useList<Row>(options: Options<Row>): List<Row> {
  const { queryKey, read, enabled = true } = options;
  const client = useQueryClient();
  const pagesKey = [...queryKey, 'pages'];
  const pageCount = client.getQueryData<{ pages: unknown[] }>(pagesKey)?.pages.length ?? 0;
  const isLong = pageCount > MAX_REFRESHED_PAGES;
  const list = useInfiniteQuery({
    queryKey: pagesKey,
    queryFn: async ({ signal, pageParam }) => {
      const { cursor, now = serverNow() } = pageParam;
      const part = { limit: PAGE_SIZE, ...(cursor !== undefined && { cursor }) };
      return { ...(await read(part, signal, new Date(now))), now };
    },
    initialPageParam: FIRST_PAGE,
    getNextPageParam: ({ nextCursor, now }): PageParam | null =>
      nextCursor === null ? null : { cursor: nextCursor, now },
    placeholderData: keepPreviousData,
    refetchOnWindowFocus: false,
    // Comparing all pages with all old ones at each new page would take the time of drawing them.
    structuralSharing: false,
    enabled: enabled && !isLong,
  });
  const { data, fetchNextPage, refetch, isFetchNextPageError } = list;
  const summary = useSummary(options);
  const hasChanged = useIsOutdated(pagesKey);
  const rows = useMemo(() => data?.pages.flatMap(({ items }) => items), [data]);
  const names = useMemo(
    () => mergeNames([...(data?.pages ?? []), summary.data].map((page) => page?.included)),
    [data, summary.data],
  );
  return {
    rows,
    names,
    count: summary.data?.count ?? undefined,
    facets: summary.data?.facets ?? NO_FACETS,
    wantFacets: summary.wantFacets,
    loading: list.isFetching && !list.isFetchingNextPage,
    error: list.error,
    hasMore: list.hasNextPage,
    loadMore: useCallback(() => void fetchNextPage({ cancelRefetch: false }), [fetchNextPage]),
    retry: () => void (isFetchNextPageError ? fetchNextPage() : refetch()),
    refresh: () => void client.resetQueries({ queryKey: pagesKey, exact: true }),
    // A list that is not read stays as it is.
    isOutdated: enabled && isLong && hasChanged,
  };
}
