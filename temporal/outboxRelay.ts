import {
  claimOutbox,
  countDueOutbox,
  deleteOutbox,
  hasDueOutbox,
  postponeOutbox,
  releaseOutbox,
  type ClaimedTask,
} from '../db/core/outbox.ts';
import type { Knex } from '../db/core/knex.ts';
import type { OutboxTask } from '../domain/dispatch/tasks.ts';
import { eachConcurrently } from '../platform/eachConcurrently.ts';
import type { Log } from '../platform/log.ts';
import { loggedError } from '../platform/loggedError.ts';
import type { Metrics } from '../platform/metrics.ts';
import type { TemporalConnection } from './connection.ts';
import { isTransient } from './executeTask.ts';

type Deps = {
  db: Knex;
  temporal: Pick<TemporalConnection, 'check'>;
  metrics: Pick<Metrics, 'outboxRows'>;
  log: Log;
  /** Sends a task to Temporal. */
  execute(task: OutboxTask, deadlineMs: number): Promise<void>;
  /** The running round starts no further call. */
  isStopping(): boolean;
  /** Whether Temporal is known to be away, which concerns all calls of the process. */
  reachability: {
    isUnreachable(): boolean;
    reportUnreachable(error: unknown): void;
    reportReachable(due: number): void;
  };
};

/**
 * Time limits of one call, and of the health check, in milliseconds. The first is above the server's own
 * timeouts, because an abandoned write makes Temporal pause the shard until it is resolved.
 */
const CALL_DEADLINE_MS = 10_000;
const CHECK_DEADLINE_MS = 1_000;

/** Tasks that are claimed together. A claim reads the oldest 2,000 tasks, whatever it takes of them. */
const BATCH = 100;

/** Calls in flight. */
const CONCURRENCY = 10;

/** After this time a round starts no further call, and returns what it has claimed. */
const ROUND_MS = 4_000;

/**
 * Longer than a round and its last call, but short: tasks that a dead process has claimed wait until the
 * lease ends.
 */
const LEASE_MS = ROUND_MS + CALL_DEADLINE_MS + 1_000;

/** How often the due tasks are counted, for the metric. */
const COUNT_EVERY_MS = 5_000;

/** Sends the tasks of the outbox that were not dispatched inline. Any number of processes may. */
export function createOutboxRelay({ db, temporal, metrics, log, ...deps }: Deps) {
  const { execute, isStopping, reachability } = deps;
  let countAt = 0;

  async function countDue(): Promise<number> {
    const due = await countDueOutbox(db);
    countAt = performance.now() + COUNT_EVERY_MS;
    metrics.outboxRows.set(due);
    return due;
  }

  /** False when Temporal may be away. */
  async function relayTask({ id, task, attempts }: ClaimedTask): Promise<boolean> {
    try {
      await execute(task, CALL_DEADLINE_MS);
      await deleteOutbox(db, [id]);
      return true;
    } catch (error) {
      const isAway = isTransient(error);
      const waitMs = backoffMs(attempts, isAway);
      log.warn(
        { err: error, workflowId: task.workflowId, attempts, waitMs },
        'a call to Temporal failed',
      );
      const { type, message } = loggedError(error);
      await postponeOutbox(db, id, waitMs, `${type}: ${message}`);
      return !isAway;
    }
  }

  /**
   * Relays tasks in their order, some at a time. The rest of them waits for the next round when this one
   * takes long, or Temporal may be away.
   */
  async function relayAll(claimed: readonly ClaimedTask[]): Promise<void> {
    const tasks = claimed.values();
    const deadline = performance.now() + ROUND_MS;
    let isAway = false;
    const relay = async (task: ClaimedTask) => {
      if (!(await relayTask(task))) isAway = true;
    };
    const mayContinue = () => !isAway && !isStopping() && performance.now() < deadline;
    try {
      await eachConcurrently(tasks, CONCURRENCY, relay, mayContinue);
    } finally {
      const left = [...tasks];
      if (left.length > 0) await releaseOutbox(db, left);
    }
  }

  /** One round. Returns true if there may be more. */
  return async (): Promise<boolean> => {
    if (performance.now() >= countAt) await countDue();
    if (!reachability.isUnreachable() && !(await hasDueOutbox(db))) return false;
    try {
      await temporal.check(CHECK_DEADLINE_MS);
    } catch (error) {
      reachability.reportUnreachable(error);
      return false;
    }
    if (reachability.isUnreachable()) reachability.reportReachable(await countDue());
    const claimed = await claimOutbox(db, { leaseMs: LEASE_MS, limit: BATCH });
    await relayAll(claimed);
    return claimed.length > 0;
  };
}

/**
 * Delay before the next try. An unreachable server is retried within seconds; a call that the
 * server rejects is retried rarely, until an operator intervenes.
 */
const backoffMs = (attempts: number, transient: boolean): number => {
  const [baseMs, maxMs] = transient ? [250, 5_000] : [1_000, 60_000];
  return Math.min(baseMs * 2 ** Math.min(attempts, 16), maxMs) * (0.75 + Math.random() / 2);
};
