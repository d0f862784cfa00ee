import { describe, expect, test } from '@jest/globals';
import { createConnectionShares, divideConnections } from '../../../db/core/connectionShares.ts';
import {
  connectionsAreFor,
  currentConnectionUser,
  useConnectionsFor,
  useConnectionsForProcess,
  type ConnectionUser,
} from '../../../platform/connectionUser.ts';

const POOL = 10;
const user = (key: string, part: ConnectionUser['part'] = 'requests'): ConnectionUser => ({
  part,
  key,
  held: 0,
  restedMs: 0,
});

/** Connections that were asked for; each says whether it was granted, and can be released. */
function pool(size = POOL) {
  const shares = createConnectionShares(size, 50, 5_000);
  const ask = (by: ConnectionUser) => {
    const asked = { granted: false, error: undefined as unknown, release: (): void => undefined };
    void shares
      .take(by, () => Promise.resolve({}))
      .then(
        ({ release }) => Object.assign(asked, { granted: true, release }),
        (error: unknown) => (asked.error = error),
      );
    return asked;
  };
  return {
    shares,
    ask,
    askMany: (count: number, key: string, part?: ConnectionUser['part']) =>
      Array.from({ length: count }, () => ask(user(key, part))),
  };
}
const turns = () => new Promise((resolve) => setImmediate(resolve));
const granted = (asked: readonly { granted: boolean }[]) => asked.filter((a) => a.granted).length;

describe('the connections of a pool', () => {
  test.each([
    [2, { requests: 1, background: 1 }],
    [6, { requests: 3, background: 2 }],
    [20, { requests: 8, background: 8 }],
  ])('of %i are divided, with some left for second connections', (size, parts) => {
    expect(divideConnections(size)).toEqual(parts);
  });

  test('go to one tenant up to half of its part; the next tenant finds one', async () => {
    const { askMany } = pool(20);
    const noisy = askMany(50, 'tenant:noisy');
    const quiet = askMany(1, 'tenant:quiet');
    await turns();
    expect(granted(noisy)).toBe(4);
    expect(granted(quiet)).toBe(1);
  });

  test('of requests are not taken by background work, nor the other way round', async () => {
    const { askMany } = pool(20);
    const work = ['a', 'b', 'c', 'd', 'e', 'f'].map((key) =>
      askMany(20, `tenant:${key}`, 'background'),
    );
    const request = askMany(1, 'tenant:a');
    await turns();
    expect(granted(work.flat())).toBe(8);
    expect(granted(request)).toBe(1);
  });

  test('that are released go to the tenant that holds the fewest, the oldest first', async () => {
    const { askMany } = pool(6);
    const noisy = askMany(5, 'tenant:noisy');
    const [second, third] = [askMany(2, 'tenant:second'), askMany(1, 'tenant:third')];
    await turns();
    expect([granted(noisy), granted(second), granted(third)]).toEqual([2, 1, 0]);
    noisy[0]?.release();
    await turns();
    expect([granted(noisy), granted(second), granted(third)]).toEqual([2, 1, 1]);
    third[0]?.release();
    second[0]?.release();
    await turns();
    expect(second[1]?.granted).toBe(true);
  });

  test('are given without a wait to who holds one already', async () => {
    const { askMany, ask } = pool(6);
    const first = user('tenant:a');
    expect(ask(first)).toBeDefined();
    askMany(10, 'tenant:b');
    await turns();
    const second = ask(first);
    await turns();
    expect(second.granted).toBe(true);
  });

  test('are all for the platform if it needs them', async () => {
    const { askMany } = pool(20);
    const platform = askMany(20, 'tenant:platform');
    await turns();
    expect(granted(platform)).toBe(8);
  });

  test('are refused to a tenant with too many requests that wait, and to no other one', async () => {
    const { askMany } = pool(20);
    const noisy = askMany(300, 'tenant:noisy');
    const quiet = askMany(1, 'tenant:quiet');
    await turns();
    const refused = noisy.filter(({ error }) => error !== undefined);
    expect(refused).toHaveLength(300 - 4 - 200);
    expect(refused[0]?.error).toMatchObject({
      code: 'too_many_requests',
      extra: { retryAfterSeconds: 2 },
    });
    expect(granted(quiet)).toBe(1);
  });

  test('are counted off when a connection cannot be opened', async () => {
    const { shares, askMany } = pool(2);
    const failed = shares.take(user('tenant:a'), () => Promise.reject(new Error('down')));
    await expect(failed).rejects.toThrow('down');
    const next = askMany(1, 'tenant:a');
    await turns();
    expect(granted(next)).toBe(1);
  });
});

test('work that users share is done for the process, not for the user who asks first', async () => {
  const [inside, after] = await useConnectionsFor(
    { part: 'requests', key: 'tenant:a' },
    async () => {
      const shared = await useConnectionsForProcess(async () => {
        await Promise.resolve();
        return currentConnectionUser();
      });
      connectionsAreFor('b');
      return [shared, currentConnectionUser()];
    },
  );
  expect(inside).toBeUndefined();
  expect(after).toMatchObject({ part: 'requests', key: 'tenant:b', held: 0 });
});
