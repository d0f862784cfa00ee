import { setTimeout as sleep } from 'node:timers/promises';
import pg from 'pg';
import type { Log } from '../../platform/log.ts';
import { REQUIRE_WRITABLE } from './knex.ts';
import { LISTEN_TO_CHANGES } from './unitOfWork.ts';

/** Notifies listeners in this process about topics that any process has changed (LISTEN/NOTIFY). */
export type Notifications = {
  start(): void;
  /**
   * Calls `listener` after each change of `topic`. Returns the function that unsubscribes.
   * Notifications can be lost, so callers must poll as well.
   */
  on(topic: string, listener: () => void): () => void;
  /**
   * Calls `listener` whenever the connection is made, also again. After a failover the server may have lost the last
   * commits, and counters go on from earlier values: what was read before is not compared by them.
   */
  onConnected(listener: () => void): void;
  /**
   * Calls the listeners of this process now. PostgreSQL notifies those of all processes, and these
   * once more, a moment later.
   */
  announce(topics: readonly string[]): void;
  stop(): Promise<void>;
};

const RECONNECT_MS = 1_000;
/** The server is asked again this long after its last answer, and answers within the second time. */
const CHECK_MS = 3_000;
const ANSWER_MS = 5_000;

/**
 * Listens on a dedicated connection, and reconnects when it is lost. After a failover it may remain connected to
 * a server that does not answer, or only reads, which notifies of nothing: it is checked every few seconds.
 * PostgreSQL shows it under `applicationName`.
 */
export function createNotifications(
  url: string,
  log: Log,
  applicationName = 'holdfast-changes',
): Notifications {
  const listeners = new Map<string, Set<() => void>>();
  const connectedListeners: (() => void)[] = [];
  let client: pg.Client | undefined;
  let timer: NodeJS.Timeout | undefined;
  let stopped = false;

  const notify = (topic: string) => listeners.get(topic)?.forEach((listener) => listener());
  const notifyAll = () => listeners.forEach((set) => set.forEach((listener) => listener()));

  function reconnectLater(lost: pg.Client) {
    if (stopped || timer || lost !== client) return;
    timer = setTimeout(() => {
      timer = undefined;
      void connect();
    }, RECONNECT_MS);
  }

  async function keepChecking(connection: pg.Client) {
    for (;;) {
      await sleep(CHECK_MS, undefined, { ref: false });
      if (stopped || connection !== client) return;
      await connection.query(REQUIRE_WRITABLE);
    }
  }

  async function connect() {
    const next = new pg.Client({
      connectionString: url,
      application_name: applicationName,
      connectionTimeoutMillis: 3_000,
      query_timeout: ANSWER_MS,
      keepAlive: true,
      keepAliveInitialDelayMillis: 10_000,
    });
    next.on('notification', ({ payload }) => notify(payload ?? ''));
    next.on('error', () => undefined);
    next.on('end', () => reconnectLater(next));
    try {
      client = next;
      await next.connect();
      await next.query(LISTEN_TO_CHANGES);
      await next.query(REQUIRE_WRITABLE);
      connectedListeners.forEach((listener) => listener());
      // Changes may have happened without a connection, so all listeners check.
      notifyAll();
      await keepChecking(next);
    } catch (error) {
      log.warn({ err: error }, 'cannot listen for changes, will try again');
      // While a statement is not answered, this closes the socket immediately.
      next.end().catch(() => undefined);
      reconnectLater(next);
    }
  }

  return {
    start: () => void connect(),
    on(topic, listener) {
      const set = listeners.get(topic) ?? new Set();
      listeners.set(topic, set.add(listener));
      return () => {
        set.delete(listener);
        if (set.size === 0 && listeners.get(topic) === set) listeners.delete(topic);
      };
    },
    onConnected: (listener) => void connectedListeners.push(listener),
    announce: (topics) => topics.forEach(notify),
    async stop() {
      stopped = true;
      clearTimeout(timer);
      await client?.end().catch(() => undefined);
    },
  };
}
