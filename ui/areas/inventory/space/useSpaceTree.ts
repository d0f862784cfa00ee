import { keepPreviousData, useInfiniteQuery, useQueries } from '@tanstack/react-query';
import { useCallback, useMemo, useState } from 'react';
import { rootsQuery, treeQuery, type SpacePrefix, type TreePage } from './spaceQueries.ts';
import {
  isSamePart,
  missingFrom,
  prefixKey,
  rowsIn,
  type Known,
  type SpaceRow,
} from './spaceRows.ts';
import { FIRST_PART, type Part } from './treeParts.ts';

export type Row = SpaceRow<SpacePrefix>;
type MoreRow = Extract<Row, { kind: 'more' }>;

/** Which parts of open prefixes are read besides the first one. */
type Parts = ReadonlyMap<string, readonly Part[]>;

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
    [FIRST_PART, ...(parts.get(id) ?? [])].map((part) => ({ id, part })),
  );
  const queries = useQueries({
    queries: wanted.map(({ id, part }) => ({
      ...treeQuery(id, part),
      placeholderData: keepPreviousData<TreePage>,
    })),
  });
  const pages = new Map<string, { part: Part; page: TreePage | undefined }[]>();
  wanted.forEach(({ id, part }, at) => {
    pages.set(id, [...(pages.get(id) ?? []), { part, page: queries[at]?.data }]);
  });
  return { pages, failed: queries.find(({ error }) => error !== null) };
}

/** The parts that are read, and the function that adds one. */
function useParts() {
  const [parts, setParts] = useState<Parts>(new Map());
  const add = useCallback((of: string, part: Part) => {
    setParts((old) => {
      const known = old.get(of) ?? [];
      return known.some((each) => isSamePart(each, part))
        ? old
        : new Map(old).set(of, [...known, part]);
    });
  }, []);
  return { parts, add };
}

/** The child on the path of each prefix on it, whether the page that has it was read or not. */
const pinnedOf = (path: readonly SpacePrefix[], id: string): SpacePrefix[] =>
  path.flatMap((prefix, at) => (path[at - 1]?.id === id ? [prefix] : []));

/** The outermost prefixes, with that on the path if its page was not read. */
function useTop(vrf: string | undefined, path: readonly SpacePrefix[]) {
  const roots = useInfiniteQuery(rootsQuery(vrf));
  const top = useMemo(() => {
    const read = roots.data?.pages.flatMap(({ rows }) => rows);
    const [first] = path;
    const isListed = first === undefined || read?.some(({ id }) => id === first.id) === true;
    return read && !isListed ? [...read, first] : read;
  }, [roots.data, path]);
  return { roots, top };
}

/**
 * The tree of an address space as far as it is open, with the free networks between prefixes. `path` leads
 * to the network that is chosen: what is around that is open, too.
 */
export function useSpaceTree(
  vrf: string | undefined,
  path: readonly SpacePrefix[],
  chosen: string | undefined,
) {
  const { roots, top } = useTop(vrf, path);
  const { opened, open } = useOpened(path, chosen);
  const { parts, add } = useParts();
  const { pages, failed } = usePages(opened, parts);
  const knownOf = (id: string): Known<SpacePrefix> => ({
    parts: pages.get(id) ?? [],
    pinned: pinnedOf(path, id),
  });
  // What the path leads to may be on no page that was read: the tree has the part that starts there.
  for (const { id } of path) {
    const [missing] = id === null || !opened.has(id) ? [] : missingFrom(knownOf(id));
    const part = missing && { from: missing.cidr };
    if (id !== null && part && !parts.get(id)?.some((each) => isSamePart(each, part)))
      add(id, part);
  }
  const rowOf = (prefix: SpacePrefix): Row => {
    const { id } = prefix;
    const children = id !== null && opened.has(id) ? rowsIn(id, knownOf(id), rowOf) : undefined;
    return { kind: 'prefix', key: prefixKey(prefix), prefix, children };
  };
  return {
    rows: top?.map(rowOf),
    opened,
    open,
    more: useCallback(({ of, part }: MoreRow) => add(of, part), [add]),
    hasMore: roots.hasNextPage,
    loadMore: () => void roots.fetchNextPage({ cancelRefetch: false }),
    isLoading: roots.isFetching,
    error: roots.error ?? failed?.error ?? null,
    retry: () => void (failed ? failed.refetch() : roots.refetch()),
  };
}
