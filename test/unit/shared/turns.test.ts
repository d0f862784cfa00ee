import { setImmediate } from 'node:timers/promises';
import { describe, expect, test } from '@jest/globals';
import {
  currentConnectionUser,
  tenantKey,
  useConnectionsFor,
} from '../../../platform/connectionUser.ts';
import { createPause, createTurns } from '../../../platform/turns.ts';

/** Occupies the process for longer than a turn. */
function compute(): void {
  const startedAt = performance.now();
  while (performance.now() - startedAt < 20);
}

test('a long computation lets other work run between its parts', async () => {
  const pause = createPause();
  const order: string[] = [];
  void setImmediate().then(() => order.push('other work'));
  for (const part of ['first', 'second']) {
    compute();
    await pause();
    order.push(part);
  }
  expect(order).toEqual(['other work', 'first', 'second']);
});

test('it ends at a pause when its signal is aborted', async () => {
  const leaving = new AbortController();
  const pause = createPause({ signal: leaving.signal });
  await pause();
  compute();
  leaving.abort(new Error('left'));
  await expect(pause()).rejects.toThrow('left');
});

test('of several computations one continues at a time, with other work in between', async () => {
  const order: string[] = [];
  let finished = false;
  const others = (async () => {
    while (!finished) {
      await setImmediate();
      order.push('other work');
    }
  })();
  const run = async (name: string) => {
    const pause = createPause();
    for (let part = 0; part < 3; part++) {
      compute();
      await pause();
      order.push(name);
    }
  };
  await Promise.all([run('one'), run('two'), run('three')]);
  finished = true;
  await others;
  const computations = order.flatMap((entry, at) => (entry === 'other work' ? [] : [at]));
  expect(computations).toHaveLength(9);
  expect(computations.filter((at, n) => at - (computations[n - 1] ?? -2) < 2)).toEqual([]);
});

describe('while time passes only in turns and rests', () => {
  const TENANT = { part: 'requests', key: tenantKey('noisy') } as const;

  /** Runs computations of a tenant, of ten turns each. Returns how much of the time they had. */
  async function shareOf(
    computations: number,
    isPatient: boolean,
    others: boolean,
    maxRestMs = Infinity,
  ) {
    let now = 0;
    let used = 0;
    const createPause = createTurns({
      now: () => now,
      rest: (ms) => {
        now += ms;
        return Promise.resolve();
      },
      activity: { othersAreActive: (key) => others && key === TENANT.key },
    });
    const run = async () => {
      const pause = createPause({ isPatient, maxRestMs });
      for (let turn = 0; turn < 10; turn++) {
        now += 2;
        used += 2;
        await pause();
      }
    };
    await useConnectionsFor(TENANT, async () => {
      await Promise.all(Array.from({ length: computations }, () => run()));
      // What is not used is known as rests.
      if (computations === 1) expect(currentConnectionUser()?.restedMs).toBe(now - used);
    });
    return used / now;
  }

  test('a patient computation uses a quarter of it while other tenants are active', async () => {
    expect(await shareOf(1, true, true)).toBe(0.25);
  });

  test('it rests no longer than it may altogether', async () => {
    expect(await shareOf(1, true, true, 6)).toBe(20 / 26);
  });

  test('it uses all of it when no other tenant is active', async () => {
    expect(await shareOf(1, true, false)).toBe(1);
  });

  test('one that may hold locks does not rest', async () => {
    expect(await shareOf(1, false, true)).toBe(1);
  });

  /** How many rests there are at the same time when three computations, of these tenants, rest. */
  async function concurrentRests(tenants: readonly [string, string, string]) {
    let resting = 0;
    let most = 0;
    let now = 0;
    const createPause = createTurns({
      now: () => now,
      rest: async () => {
        most = Math.max(most, ++resting);
        await setImmediate();
        resting--;
      },
      activity: { othersAreActive: () => true },
    });
    const run = async () => {
      const pause = createPause({ isPatient: true });
      for (let turn = 0; turn < 3; turn++) {
        now += 2;
        await pause();
      }
    };
    await Promise.all(
      tenants.map((id) => useConnectionsFor({ part: 'requests', key: tenantKey(id) }, run)),
    );
    return most;
  }

  test('several patient computations of a tenant rest one after another', async () => {
    expect(await concurrentRests(['noisy', 'noisy', 'noisy'])).toBe(1);
  });

  test('and do not make those of other tenants rest longer', async () => {
    expect(await concurrentRests(['noisy', 'noisy', 'quiet'])).toBe(2);
  });

  test('a rest is bounded', async () => {
    const rests: number[] = [];
    let now = 0;
    const createPause = createTurns({
      now: () => now,
      rest: (ms) => Promise.resolve(rests.push(ms)),
      activity: { othersAreActive: () => true },
    });
    await useConnectionsFor(TENANT, async () => {
      const pause = createPause({ isPatient: true });
      now = 60_000;
      await pause();
    });
    expect(rests).toEqual([50]);
  });
});
