import { keepPreviousData, useInfiniteQuery, useQueries } from '@tanstack/react-query';
import { useMemo, useState } from 'react';
import { rootsQuery, treeQuery, type SpacePrefix, type TreePage } from './spaceQueries.ts';
import { prefixKey, rowsIn, type Known, type SpaceRow } from './spaceRows.ts';

/** Which parts of open prefixes are read: `null` is the first. */
type Parts = ReadonlyMap<string, readonly (string | null)[]>;

/** Which prefixes are open: those that the user has opened, and those on the path to what was chosen. */
function useOpened(path: readonly SpacePrefix[], chosen: string | undefined) {
  const around = path.filter(({ cidr }) => cidr !== chosen);
  const pathKeys = around.map(prefixKey).join(' ');
  const [state, setState] = useState({ opened: new Set<string>(), pathKeys: '' });
  if (state.pathKeys !== pathKeys)
    setState({
      opened: new Set([...state.opened, ...pathKeys.split(' ').filter(Boolean)]),
      pathKeys,
    });
  return {
    opened: state.opened as ReadonlySet<string>,
    open: (next: ReadonlySet<string>) => setState((old) => ({ ...old, opened: new Set(next) })),
  };
}

/** Reads the parts of open prefixes. */
function usePages(opened: ReadonlySet<string>, parts: Parts) {
  const wanted = [...opened].flatMap((id) =>
    (parts.get(id) ?? [null]).map((cursor) => ({ id, cursor })),
  );
  const queries = useQueries({
    queries: wanted.map(({ id, cursor }) => ({
      ...treeQuery(id, cursor),
      placeholderData: keepPreviousData<TreePage>,
    })),
  });
  const pages = new Map<string, { cursor: string | null; page: TreePage | undefined }[]>();
  wanted.forEach(({ id, cursor }, at) => {
    pages.set(id, [...(pages.get(id) ?? []), { cursor, page: queries[at]?.data }]);
  });
  return { pages, failed: queries.find(({ error }) => error !== null) };
}

/** The child on the path of each prefix on it, whether the page that has it was read or not. */
const pinnedOf = (path: readonly SpacePrefix[], id: string): SpacePrefix[] =>
  path.flatMap((prefix, at) => (path[at - 1]?.id === id ? [prefix] : []));

/**
 * The tree of an address space as far as it is open, with the free networks between prefixes. `path` leads
 * to the network that is chosen: what is around that is open, too.
 */
export function useSpaceTree(
  vrf: string | undefined,
  path: readonly SpacePrefix[],
  chosen: string | undefined,
) {
  const roots = useInfiniteQuery(rootsQuery(vrf));
  const { opened, open } = useOpened(path, chosen);
  const [parts, setParts] = useState<Parts>(new Map());
  const { pages, failed } = usePages(opened, parts);
  const top = useMemo(() => {
    const read = roots.data?.pages.flatMap(({ rows }) => rows);
    const [first] = path;
    const isListed = first === undefined || read?.some(({ id }) => id === first.id) === true;
    return read && !isListed ? [...read, first] : read;
  }, [roots.data, path]);
  const rowOf = (prefix: SpacePrefix): SpaceRow => {
    const known: Known | undefined =
      prefix.id !== null && opened.has(prefix.id)
        ? { pages: pages.get(prefix.id) ?? [], pinned: pinnedOf(path, prefix.id) }
        : undefined;
    const children = known && prefix.id !== null ? rowsIn(prefix.id, known, rowOf) : undefined;
    return { kind: 'prefix', key: prefixKey(prefix), prefix, children };
  };
  return {
    rows: top?.map(rowOf),
    opened,
    open,
    more: ({ of, cursor }: Extract<SpaceRow, { kind: 'more' }>) =>
      setParts((old) => new Map(old).set(of, [...(old.get(of) ?? [null]), cursor])),
    hasMore: roots.hasNextPage,
    loadMore: () => void roots.fetchNextPage({ cancelRefetch: false }),
    isLoading: roots.isFetching,
    error: roots.error ?? failed?.error ?? null,
    retry: () => void (failed ? failed.refetch() : roots.refetch()),
  };
}
