import { setTimeout as sleep } from 'node:timers/promises';
import {
  claimOutbox,
  countDueOutbox,
  deleteOutbox,
  postponeOutbox,
  type ClaimedTask,
} from '../db/core/outbox.ts';
import type { Changes } from '../db/core/notifications.ts';
import type { Knex } from '../db/core/knex.ts';
import { OUTBOX_TOPIC, type OutboxRow } from '../db/core/unitOfWork.ts';
import type { Log } from '../platform/log.ts';
import { startLoop, type Loop } from '../platform/loop.ts';
import type { Metrics } from '../platform/metrics.ts';
import type { DispatchTask } from './contracts.ts';
import type { TemporalLink } from './connection.ts';
import { isTransient, perform } from './executeTask.ts';
import { mirrorTo } from './scheduleSync.ts';

type Deps = {
  db: Knex;
  link: TemporalLink;
  changes: Changes;
  log: Log;
  metrics: Metrics;
  taskQueue: string;
  /** True when this process has a worker of its own that can take a first task at once. */
  eager: () => boolean;
};

/**
 * Limits of one call: right after a commit, and by the relay. Nobody waits for it, and a server that is busy takes it ill
 * when a write is given up half way: it stops the queues of the shard until it knows what became of it.
 */
const QUICK_DEADLINE_MS = 5_000;
const RELAY_DEADLINE_MS = 10_000;

/** Limit of the question whether Temporal is there, and of the wait for quick calls when the process stops. */
const CHECK_DEADLINE_MS = 1_000;
const STOP_WAIT_MS = 2_000;

/**
 * Quick calls under way at once, and those that wait for their turn: the runs that a burst of requests starts shall
 * not take the processor from its answers. What is beyond goes to the relay.
 */
const QUICK_AT_ONCE = 16;
const MAX_WAITING = 200;

const DELETE_EVERY_MS = 50;
const RELAY_EVERY_MS = 1_000;
/** Longer than a call takes at most; not much, since what a process that died has claimed waits for its end. */
const LEASE_MS = 15_000;

/** Calls claimed, and made, at once. */
const RELAY_BATCH = 10;

/**
 * Makes the calls to Temporal that commits owe. The quick way tries each once, right after its commit; the relay
 * makes every call that is still owed, in any number of processes, for as long as it takes.
 */
export function createDispatch({ db, link, changes, log, metrics, taskQueue, eager }: Deps) {
  const mirror = mirrorTo({ db, taskQueue });
  const made: string[] = [];
  const waiting: OutboxRow[] = [];
  let underWay = 0;
  let away = false;
  let loops: Loop[] = [];
  let off: () => void = () => undefined;

  async function make(way: 'quick' | 'relay', task: DispatchTask, deadlineMs: number) {
    try {
      await link.call(deadlineMs, (client) =>
        perform(client, task, { taskQueue, eager: eager(), mirror }),
      );
      metrics.dispatches.inc({ way, outcome: 'done' });
    } catch (error) {
      metrics.dispatches.inc({ way, outcome: 'failed' });
      throw error;
    }
  }

  function sayAway(error: unknown) {
    if (!away)
      log.warn(
        { err: error },
        'Temporal is away; records are kept and their runs start when it is back',
      );
    away = true;
  }

  async function quick({ id, task }: OutboxRow) {
    try {
      await make('quick', task as DispatchTask, QUICK_DEADLINE_MS);
      made.push(id);
    } catch (error) {
      if (isTransient(error)) sayAway(error);
      else
        log.error(
          { err: error, workflowId: task.workflowId },
          'Temporal refuses a call; it will be repeated',
        );
    }
  }

  async function quickSide() {
    underWay += 1;
    for (let row = waiting.shift(); row && !away; row = waiting.shift()) await quick(row);
    underWay -= 1;
  }

  /** Forgets made calls in batches: one that is forgotten too late is made again, which changes nothing. */
  async function forgetMade() {
    const ids = made.splice(0, 500);
    if (ids.length === 0) return false;
    await deleteOutbox(db, ids).catch((error: unknown) => {
      made.push(...ids.slice(0, 10_000 - made.length));
      throw error;
    });
    return made.length > 0;
  }

  async function relayOne({ id, task, attempts }: ClaimedTask<DispatchTask>) {
    try {
      await make('relay', task, RELAY_DEADLINE_MS);
      await deleteOutbox(db, [id]);
    } catch (error) {
      const waitMs = backoffMs(attempts, isTransient(error));
      log.warn(
        { err: error, workflowId: task.workflowId, attempts, waitMs },
        'a call to Temporal failed',
      );
      await postponeOutbox(db, id, new Date(Date.now() + waitMs), String(error));
    }
  }

  async function relayRound(): Promise<boolean> {
    const due = await countDueOutbox(db, new Date());
    metrics.outboxRows.set(due);
    if (due === 0 && !away) return false;
    try {
      await link.check(CHECK_DEADLINE_MS);
    } catch (error) {
      sayAway(error);
      return false;
    }
    if (away) log.info({ due }, 'Temporal is back');
    away = false;
    const claimed = await claimOutbox<DispatchTask>(db, {
      now: new Date(),
      leaseMs: LEASE_MS,
      limit: RELAY_BATCH,
    });
    await Promise.all(claimed.map(relayOne));
    return claimed.length > 0;
  }

  return {
    /** False while calls are left to the relay at once. */
    isQuick: (): boolean => !away && waiting.length < MAX_WAITING && loops.length > 0,

    /** Takes over the calls of a transaction that has committed. */
    committed(rows: readonly OutboxRow[]): void {
      if (away || loops.length === 0) return;
      waiting.push(...rows.slice(0, MAX_WAITING - waiting.length));
      for (let free = QUICK_AT_ONCE - underWay; free > 0 && waiting.length > 0; free--)
        void quickSide();
    },

    start(): void {
      loops = [
        startLoop({ name: 'relay', everyMs: RELAY_EVERY_MS, log }, relayRound),
        startLoop({ name: 'forget made calls', everyMs: DELETE_EVERY_MS, log }, forgetMade),
      ];
      off = changes.on(OUTBOX_TOPIC, () => loops[0]?.wake());
    },

    /** Resolves when nothing is under way. */
    async stop(): Promise<void> {
      off();
      const stopping = loops;
      loops = [];
      await Promise.all(stopping.map((loop) => loop.stop()));
      // What waits is owed and will be relayed, and so is what is not answered soon.
      waiting.length = 0;
      for (let waits = 0; underWay > 0 && waits < STOP_WAIT_MS; waits += 20) await sleep(20);
      await forgetMade().catch(() => undefined);
    },
  };
}

/** A server that is away is asked again soon; a call that it refuses is repeated seldom, until somebody helps. */
const backoffMs = (attempts: number, transient: boolean): number => {
  const [baseMs, maxMs] = transient ? [250, 5_000] : [1_000, 60_000];
  return Math.min(baseMs * 2 ** Math.min(attempts, 16), maxMs) * (0.75 + Math.random() / 2);
};
