import { afterEach, beforeEach, expect, test } from '@jest/globals';
import { hashKey, InfiniteQueryObserver, QueryClient } from '@tanstack/react-query';
import { followOutdated, isOutdated } from '../../../ui/parts/list/outdated.ts';

const KEY = ['jobs', 'list'];
const OLD = { pages: 4, before: 0 };

let client: QueryClient;
let ends: (() => void)[];
let isAway: boolean;

/** A list that is not read again by itself. */
function showList() {
  const observer = new InfiniteQueryObserver(client, {
    queryKey: KEY,
    queryFn: ({ pageParam }) =>
      isAway ? Promise.reject(new Error('away')) : Promise.resolve(pageParam),
    retry: false,
    initialPageParam: 0,
    getNextPageParam: (last: number) => last + 1,
    enabled: false,
  });
  ends.push(observer.subscribe(() => undefined));
  return observer;
}

const follow = (old = OLD) =>
  ends.push(followOutdated(client.getQueryCache(), hashKey(KEY), old, () => undefined));
const isOld = () => isOutdated(client.getQueryCache(), hashKey(KEY));

beforeEach(() => {
  client = new QueryClient();
  ends = [];
  isAway = false;
});
afterEach(() => {
  for (const end of ends) end();
  client.clear();
});

test('a list is outdated from a change until it is read from its start', async () => {
  const list = showList();
  follow();
  await list.refetch();
  expect(isOld()).toBe(false);
  await client.invalidateQueries({ queryKey: KEY });
  expect(isOld()).toBe(true);
  await list.fetchNextPage();
  expect(isOld()).toBe(true);
  await list.refetch();
  expect(isOld()).toBe(false);
});

test('a list whose next page could not be read is outdated until it is read from its start', async () => {
  const list = showList();
  follow();
  await list.refetch();
  isAway = true;
  await list.fetchNextPage();
  await client.invalidateQueries({ queryKey: KEY });
  isAway = false;
  await list.fetchNextPage();
  expect(isOld()).toBe(true);
  await list.refetch();
  expect(isOld()).toBe(false);
});

test('a list that is reset is not outdated', async () => {
  const list = showList();
  follow();
  await list.refetch();
  await client.invalidateQueries({ queryKey: KEY });
  await client.resetQueries({ queryKey: KEY });
  expect(isOld()).toBe(false);
});

test('a long list that is shown again after a longer time is outdated', async () => {
  const list = showList();
  for (let page = 0; page < 5; page += 1) await list.fetchNextPage();
  const later = { pages: 4, before: Date.now() + 1 };
  follow(later);
  expect(isOld()).toBe(true);
  await list.fetchNextPage();
  expect(isOld()).toBe(true);
});
