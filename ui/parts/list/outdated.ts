import type { Query, QueryCache } from '@tanstack/react-query';

type Data = { pages: readonly unknown[] };

/** Lists that have changed since they were last read from their start. A read of one more page says nothing of the rest. */
const outdated = new WeakSet<Query>();

const isNextPage = ({ state }: Query): boolean => {
  const { fetchMore } = (state.fetchMeta ?? {}) as { fetchMore?: unknown };
  return fetchMore !== undefined && fetchMore !== null;
};

/** Follows whether a list is outdated. When it is shown, it is if it is longer and older than that. */
export function followOutdated(
  cache: QueryCache,
  hash: string,
  old: { pages: number; before: number },
  onChange: () => void,
): () => void {
  const shown: Query | undefined = cache.get(hash);
  if (shown) {
    const { data, dataUpdatedAt, isInvalidated } = shown.state;
    const { pages = [] } = (data ?? {}) as Partial<Data>;
    const isOld = pages.length > old.pages && dataUpdatedAt < old.before;
    if (isInvalidated || isOld) outdated.add(shown);
  }
  return cache.subscribe((event) => {
    const query = event.query as Query;
    if (query.queryHash !== hash || event.type !== 'updated') return;
    const { type } = event.action;
    // After an error a change makes no event of its own: the query counts as invalidated already.
    if (type === 'invalidate' || type === 'error') outdated.add(query);
    else if (type === 'setState' || (type === 'success' && !isNextPage(query)))
      outdated.delete(query);
    onChange();
  });
}

export function isOutdated(cache: QueryCache, hash: string): boolean {
  const query = cache.get(hash);
  return query !== undefined && outdated.has(query);
}
