import { AsyncLocalStorage } from 'node:async_hooks';

type Options<T, R> = {
  /** Most calls that are made together. */
  maxTogether: number;
  /** Most calls that wait for one key; others are made alone. */
  maxWaiting: number;
  /** How long a call waits before it is made alone. */
  maxWaitMs: number;
  /** Makes several calls. Null for a call that must be made alone. */
  together(items: readonly T[]): Promise<readonly (R | null)[]>;
};

/** How a waiting call goes on: with its result, alone, or alone while others wait for it. */
type Outcome<R> = { result: R } | 'alone' | 'first';

type Waiting<T, R> = {
  item: T;
  /** Runs a function in the asynchronous context of the call. */
  inContext: <F>(run: () => F) => F;
  goOn(outcome: Outcome<R>): void;
  fail(error: unknown): void;
};

/**
 * Combines calls that would wait for each other anyway, so that they share what each costs. A call
 * is made alone at first; those with the same owner and key that arrive until it ends are then made
 * together. Nothing waits for others to arrive.
 */
export function createCombiner<T, R>({
  maxTogether,
  maxWaiting,
  maxWaitMs,
  together,
}: Options<T, R>) {
  type Queues = Map<string, Waiting<T, R>[]>;
  const queuesOf = new WeakMap<object, Queues>();

  function waitIn(queue: Waiting<T, R>[], item: T): Promise<Outcome<R>> {
    const { promise, resolve, reject } = Promise.withResolvers<Outcome<R>>();
    const timer = setTimeout(() => {
      const at = queue.indexOf(waiting);
      if (at === -1) return;
      queue.splice(at, 1);
      resolve('alone');
    }, maxWaitMs);
    const waiting: Waiting<T, R> = {
      item,
      inContext: AsyncLocalStorage.snapshot(),
      goOn(outcome) {
        clearTimeout(timer);
        resolve(outcome);
      },
      fail(error) {
        clearTimeout(timer);
        reject(error);
      },
    };
    queue.push(waiting);
    return promise;
  }

  /** Makes the calls of a group, and then those that have arrived in the meantime. */
  async function runGroup(group: readonly Waiting<T, R>[], goOn: () => void): Promise<void> {
    try {
      const results = await together(group.map(({ item }) => item));
      for (const [i, waiting] of group.entries()) {
        const result = results[i] ?? null;
        waiting.goOn(result === null ? 'alone' : { result });
      }
    } catch (error) {
      for (const waiting of group) waiting.fail(error);
    } finally {
      goOn();
    }
  }

  function startNext(queues: Queues, key: string): void {
    const group = queues.get(key)?.splice(0, maxTogether) ?? [];
    const [first, ...others] = group;
    if (!first) queues.delete(key);
    else if (others.length === 0) first.goOn('first');
    else void first.inContext(() => runGroup(group, () => startNext(queues, key)));
  }

  /**
   * Makes a call: alone, or together with others of the same owner and key. Errors: those of
   * `alone` and `together`.
   */
  return async function call(
    owner: object,
    key: string,
    item: T,
    alone: () => Promise<R>,
  ): Promise<R> {
    const queues: Queues = queuesOf.get(owner) ?? new Map<string, Waiting<T, R>[]>();
    queuesOf.set(owner, queues);
    const queue = queues.get(key);
    let outcome: Outcome<R> = 'first';
    if (!queue) queues.set(key, []);
    else outcome = queue.length < maxWaiting ? await waitIn(queue, item) : 'alone';
    if (outcome === 'alone') return alone();
    if (outcome !== 'first') return outcome.result;
    try {
      return await alone();
    } finally {
      startNext(queues, key);
    }
  };
}
