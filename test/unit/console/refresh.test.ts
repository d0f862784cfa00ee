import { mock } from 'node:test';
import { afterEach, beforeEach, expect, test } from '@jest/globals';
import { QueryClient, QueryObserver } from '@tanstack/react-query';
import { createRefresh, createRereading, NOT_POLLED } from '../../../ui/app/refresh.ts';

const PAUSE_MS = 500;
const KEY = ['jobs', 'one'];

let isHidden: boolean;
let client: QueryClient;
let reads: PromiseWithResolvers<string>[];
let ends: (() => void)[];

/** A part of the page that shows the record. */
function show() {
  const observer = new QueryObserver(client, {
    queryKey: KEY,
    queryFn: () => {
      const read = Promise.withResolvers<string>();
      reads.push(read);
      return read.promise;
    },
    staleTime: 60_000,
  });
  ends.push(observer.subscribe(() => undefined));
  return () => observer.getCurrentResult().data;
}

const refreshOf = (queryKey: readonly unknown[]) => {
  const options = { client, queryKey, pauseMs: PAUSE_MS, isHidden: () => isHidden };
  const refresh = createRefresh(options);
  ends.push(() => refresh.stop());
  return refresh;
};

beforeEach(() => {
  mock.timers.enable({ apis: ['setTimeout'] });
  isHidden = false;
  client = new QueryClient();
  [reads, ends] = [[], []];
});
afterEach(() => {
  for (const end of ends) end();
  client.clear();
  mock.timers.reset();
});

const afterReads = () => new Promise((resolve) => setImmediate(resolve));
const answer = (text: string) => {
  reads.at(-1)?.resolve(text);
  return afterReads();
};
const pause = () => {
  mock.timers.tick(PAUSE_MS);
  return afterReads();
};

test('many changes are one read', async () => {
  const data = show();
  await answer('old');
  const refresh = refreshOf(['jobs']);
  for (let change = 0; change < 10; change += 1) refresh.soon();
  await pause();
  expect(reads).toHaveLength(2);
  await answer('new');
  expect(data()).toBe('new');
  await pause();
  expect(reads).toHaveLength(2);
});

test('a change during a read is read after it, also during the first one', async () => {
  const data = show();
  const refresh = refreshOf(['jobs']);
  refresh.soon();
  await pause();
  await pause();
  expect(reads).toHaveLength(1);
  await answer('from before the change');
  await pause();
  expect(reads).toHaveLength(2);
  await answer('new');
  expect(data()).toBe('new');
});

test('a hidden page reads when it is shown', async () => {
  show();
  await answer('old');
  const refresh = refreshOf(['jobs']);
  isHidden = true;
  refresh.soon();
  await pause();
  await pause();
  expect(reads).toHaveLength(1);
  isHidden = false;
  refresh.shown();
  expect(reads).toHaveLength(2);
  await answer('new');
  refresh.shown();
  expect(reads).toHaveLength(2);
});

test('what changes just before a page is left is read when it is shown again', async () => {
  show();
  await answer('old');
  const refresh = refreshOf(['jobs']);
  refresh.soon();
  refresh.stop();
  ends[0]?.();
  await pause();
  expect(reads).toHaveLength(1);
  show();
  expect(reads).toHaveLength(2);
});

test('a hidden page is polled when it is shown, without what answers a question', async () => {
  show();
  const asked = new QueryObserver(client, {
    queryKey: ['plan'],
    queryFn: () => Promise.resolve(0),
    meta: NOT_POLLED,
  });
  ends.push(asked.subscribe(() => undefined));
  await answer('old');
  const before = asked.getCurrentResult().dataUpdatedAt;
  const rereading = createRereading(client, () => isHidden);
  isHidden = true;
  rereading.soon(true);
  rereading.soon(true);
  expect(reads).toHaveLength(1);
  isHidden = false;
  rereading.shown();
  rereading.shown();
  expect(reads).toHaveLength(2);
  expect(client.getQueryState(['plan'])).toMatchObject({
    dataUpdatedAt: before,
    isInvalidated: false,
    fetchStatus: 'idle',
  });
  rereading.soon(false);
  expect(client.getQueryState(['plan'])?.fetchStatus).toBe('fetching');
});
