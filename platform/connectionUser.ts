import { AsyncLocalStorage } from 'node:async_hooks';

/**
 * For whom the current code uses the database. `key` is the tenant; before the caller of a request
 * is known, it is the address of the client. `held`: the connections that it has now. `restedMs`: how
 * long it has rested, in milliseconds. `onUsed` is called with the time for which it has computed or
 * held a connection without resting. `leavesOutCounts`: lists leave out what they are asked to count.
 */
export type ConnectionUser = {
  readonly part: 'requests' | 'background';
  key: string;
  held: number;
  restedMs: number;
  onUsed?: (usedMs: number) => void;
  leavesOutCounts?: boolean;
};

const users = new AsyncLocalStorage<ConnectionUser | undefined>();

/** Runs `work`, and all that it awaits, for a user of connections. */
export const useConnectionsFor = <T>(
  user: Pick<ConnectionUser, 'part' | 'key'>,
  work: () => T,
): T => users.run({ ...user, held: 0, restedMs: 0 }, work);

/** Runs `work` for the process itself: work that users share must not wait for the turn of one. */
export const useConnectionsForProcess = <T>(work: () => T): T => users.run(undefined, work);

/** Says whose request this is, as soon as that is known. */
export function connectionsAreFor(tenantId: string): void {
  const user = users.getStore();
  if (user) user.key = tenantKey(tenantId);
}

const TENANT = 'tenant:';

/** No address of a client is the key of a tenant. */
export const tenantKey = (tenantId: string): string => `${TENANT}${tenantId}`;
export const isTenantKey = (key: string): boolean => key.startsWith(TENANT);

/** Computes something without a connection, and reports the time. */
export function computeFor<T>(compute: () => T): T {
  const startedAt = performance.now();
  try {
    return compute();
  } finally {
    currentConnectionUser()?.onUsed?.(performance.now() - startedAt);
  }
}

/**
 * Makes the parts of a stream for the current user: a stream that is read later
 * goes on in the context of its reader, which is none.
 */
export function partsForCurrentUser<T>(parts: AsyncIterable<T>): AsyncIterable<T> {
  const user = users.getStore();
  return {
    [Symbol.asyncIterator]() {
      const source = parts[Symbol.asyncIterator]();
      return {
        next: () => users.run(user, () => source.next()),
        return: () =>
          users.run(
            user,
            () => source.return?.() ?? Promise.resolve({ done: true, value: undefined }),
          ),
      };
    },
  };
}

/** Undefined for the process itself: its loops, its start. */
export const currentConnectionUser = (): ConnectionUser | undefined => users.getStore();
