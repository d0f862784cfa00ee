import { setTimeout as sleep } from 'node:timers/promises';
import { deleteOutbox } from '../db/core/outbox.ts';
import type { Notifications } from '../db/core/notifications.ts';
import type { Knex } from '../db/core/knex.ts';
import { OUTBOX_TOPIC, type OutboxRow } from '../db/core/unitOfWork.ts';
import type { Log } from '../platform/log.ts';
import { createLoop } from '../platform/loop.ts';
import type { Metrics } from '../platform/metrics.ts';
import { inSpanOf } from '../platform/tracing.ts';
import {
  shortJobsKey,
  startShortJobsTask,
  tenantOfTask,
  type OutboxTask,
  type StartJobTask,
  type StartShortJobsTask,
} from '../domain/dispatch/tasks.ts';
import type { TemporalConnection } from './connection.ts';
import { createDispatchQueue } from './dispatchQueue.ts';
import { isTransient, executeTask } from './executeTask.ts';
import { createOutboxRelay } from './outboxRelay.ts';
import { createShortJobStarts, type MakeAttempts, type ShortJobRow } from './shortJobStarts.ts';
import { createScheduleSync } from './scheduleSync.ts';

type Deps = {
  db: Knex;
  temporal: TemporalConnection;
  notifications: Notifications;
  log: Log;
  metrics: Metrics;
  taskQueue: string;
  /** A worker without a heartbeat for this long is considered dead, in milliseconds. */
  heartbeatMs: number;
  /** True when this process has a worker that can take the first task directly (eager start). */
  eager: () => boolean;
  /** Makes the first attempts of short jobs in this process, before their workflow is started. */
  attempts: MakeAttempts;
};

/**
 * Time limit of an inline call, in milliseconds. Nothing waits for it. The limit is above the server's
 * own timeouts, because an abandoned write makes Temporal pause the shard until it is resolved.
 */
const INLINE_DEADLINE_MS = 5_000;

/** How long a stopping process waits for calls in flight, in milliseconds. */
const STOP_WAIT_MS = 2_000;

/**
 * Inline calls in flight. The workflows that a burst of requests starts must not take the processor
 * from the responses.
 */
const INLINE_CONCURRENCY = 16;

/** Shorter limits of workflow tasks would take a busy worker for a dead one. */
const MIN_WORKFLOW_TASK_TIMEOUT_MS = 3_000;

const DELETE_EVERY_MS = 200;
const RELAY_EVERY_MS = 1_000;

/**
 * Dispatches the outbox tasks of commits to Temporal. Each task is tried once inline, right after
 * its commit. The relay retries the remaining tasks until they succeed; any number of processes may
 * run it.
 */
export function createDispatcher({
  db,
  temporal,
  notifications,
  log,
  metrics,
  taskQueue,
  heartbeatMs,
  eager,
  attempts,
}: Deps) {
  const workflowTaskTimeoutMs = Math.max(heartbeatMs, MIN_WORKFLOW_TASK_TIMEOUT_MS);
  const syncSchedule = createScheduleSync({ db, taskQueue });
  const completedIds: string[] = [];
  const queue = createDispatchQueue({ onReady: startCalls });
  const shortJobs = createShortJobStarts({
    attempts,
    startWorkflow(rows) {
      queue.addTogether(rows);
      startCalls();
    },
  });
  let inFlight = 0;
  let unreachable = false;
  let unsubscribe: () => void = () => undefined;

  async function execute(
    path: 'inline' | 'relay',
    task: OutboxTask | StartShortJobsTask,
    deadlineMs: number,
  ) {
    const startedAt = performance.now();
    const onEnded = (outcome: 'done' | 'failed') => {
      const seconds = (performance.now() - startedAt) / 1_000;
      metrics.dispatches.inc({ path, outcome });
      metrics.temporalCallSeconds.observe({ kind: task.kind, outcome }, seconds);
    };
    try {
      await inSpanOf(task.trace, `dispatch ${task.kind}`, spanOptionsOf(task, path), () =>
        temporal.call(deadlineMs, (client) =>
          executeTask(client, task, {
            taskQueue,
            eager: eager(),
            workflowTaskTimeoutMs,
            syncSchedule,
          }),
        ),
      );
      onEnded('done');
    } catch (error) {
      onEnded('failed');
      throw error;
    }
  }

  function reportUnreachable(error: unknown) {
    if (!unreachable)
      log.warn(
        { err: error },
        'Temporal is unreachable; tasks stay in the outbox until it is back',
      );
    unreachable = true;
  }

  async function dispatchInline(rows: readonly OutboxRow[], isShared: boolean) {
    const task = inlineCall(rows, isShared);
    if (!task) return;
    try {
      await execute('inline', task, INLINE_DEADLINE_MS);
      completedIds.push(...rows.map(({ id }) => id));
    } catch (error) {
      if (isTransient(error)) reportUnreachable(error);
      else
        log.error(
          { err: error, workflowId: task.workflowId },
          'Temporal rejected a call; it will be retried',
        );
    }
  }

  async function drainQueue() {
    inFlight += 1;
    while (!unreachable) {
      const next = queue.take();
      if (!next) break;
      await dispatchInline(next.rows, next.isShared);
      next.done();
    }
    inFlight -= 1;
  }

  function startCalls(): void {
    for (let free = INLINE_CONCURRENCY - inFlight; free > 0 && queue.isReady(); free--)
      void drainQueue();
  }

  /**
   * Deletes dispatched tasks in batches. A task that is deleted too late is repeated without
   * effect.
   */
  async function deleteCompleted() {
    const ids = completedIds.splice(0, 500);
    if (ids.length === 0) return false;
    await deleteOutbox(db, ids).catch((error: unknown) => {
      completedIds.push(...ids.slice(0, 10_000 - completedIds.length));
      throw error;
    });
    return completedIds.length > 0;
  }

  const relayBatch = createOutboxRelay({
    db,
    temporal,
    metrics,
    log,
    execute: (task, deadlineMs) => execute('relay', task, deadlineMs),
    isStopping: () => !relayLoop.isRunning(),
    reachability: {
      isUnreachable: () => unreachable,
      reportUnreachable,
      reportReachable(due) {
        log.info({ due }, 'Temporal is reachable again');
        unreachable = false;
      },
    },
  });

  const relayLoop = createLoop({ name: 'relay', everyMs: RELAY_EVERY_MS, log }, relayBatch);
  const deleteLoop = createLoop(
    { name: 'delete dispatched tasks', everyMs: DELETE_EVERY_MS, log },
    deleteCompleted,
  );

  return {
    /** False while tasks go to the relay directly. */
    canDispatchInline: (task: OutboxTask): boolean =>
      !unreachable && queue.hasSpaceFor(task) && relayLoop.isRunning(),

    /** Queues the tasks of a committed transaction for inline dispatch. */
    onCommitted(rows: readonly OutboxRow[]): void {
      if (unreachable || !relayLoop.isRunning()) return;
      for (const row of rows) {
        const key = shortJobsKey(row.task);
        if (key !== undefined && isShortJob(row) && shortJobs.hasSpaceFor(tenantOfTask(row.task)))
          shortJobs.add(key, row);
        else queue.add(row);
      }
      startCalls();
    },

    start(): void {
      relayLoop.start();
      deleteLoop.start();
      unsubscribe = notifications.on(OUTBOX_TOPIC, relayLoop.wake);
    },

    /** Stops the loops and waits for calls in flight. */
    async stop(): Promise<void> {
      unsubscribe();
      await Promise.all([relayLoop.stop(), deleteLoop.stop()]);
      // Queued tasks, and calls without an answer in time, stay in the outbox for a relay. The workflows
      // of jobs whose attempts are made are started, for the record.
      queue.clear();
      shortJobs.flush();
      for (let waits = 0; inFlight > 0 && waits < STOP_WAIT_MS; waits += 20) await sleep(20);
      await deleteCompleted().catch(() => undefined);
    },
  };
}

const spanOptionsOf = (task: OutboxTask | StartShortJobsTask, path: string) =>
  ({
    kind: 'producer',
    attributes: { 'temporal.workflow.id': task.workflowId, 'holdfast.dispatch.path': path },
  }) as const;

const isShortJob = (row: OutboxRow): row is ShortJobRow => isStartOfJob(row.task);

const isStartOfJob = (task: OutboxTask): task is StartJobTask =>
  task.kind === 'start' && task.workflow === 'job';

/** The call for tasks that the queue hands out together. `isShared`: starts of short jobs. */
function inlineCall(
  rows: readonly OutboxRow[],
  isShared: boolean,
): OutboxTask | StartShortJobsTask | undefined {
  const [first, ...others] = rows;
  if (!first || !isShared || !isStartOfJob(first.task)) return first?.task;
  const tasks = others.map(({ task }) => task);
  return startShortJobsTask(first.id, first.task, tasks.filter(isStartOfJob));
}
