import {
  NativeConnection,
  Runtime,
  Worker,
  makeTelemetryFilterString,
  type WorkerOptions,
} from '@temporalio/worker';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Log } from '../platform/log.ts';
import { workflowBundle } from './bundle.ts';
import { activityQueueOf } from './contracts.ts';
import type { TemporalLink } from './connection.ts';
import { prepareNamespace } from './prepare.ts';

type Deps = {
  link: TemporalLink;
  log: Log;
  taskQueue: string;
  activities: object;
  heartbeatMs: number;
  stopGraceMs: number;
  maxInlineRuns: number;
  maxActivityRuns: number;
  maxDeliveryRuns: number;
  reconcileSeconds: number;
};

const RETRY_MS = 1_000;

/** The SDK's own lines go through ours; a server that is away is our business to tell. */
export function installRuntime(log: Log): void {
  Runtime.install({
    logger: {
      log: (level, message, meta) => log.debug({ sdk: level, ...meta }, message),
      trace: () => undefined,
      debug: () => undefined,
      info: (message, meta) => log.debug(meta, message),
      warn: (message, meta) => log.warn(meta, message),
      error: (message, meta) => log.error(meta, message),
    },
    telemetryOptions: {
      logging: { forward: {}, filter: makeTelemetryFilterString({ core: 'ERROR' }) },
    },
    // Signals are handled by the process, which stops its parts in order.
    shutdownSignals: [],
  });
}

/**
 * The workers of one process: one for workflows, inline work and deliveries, one for long and network work, on task
 * queues of their own. Each kind of work has its own room, so that none takes another's place. They come up when
 * Temporal is there and stay up.
 */
export function createWorkers(deps: Deps) {
  const { link, log, taskQueue, activities } = deps;
  let running: Worker[] = [];
  let stopping = false;
  let ended: Promise<void> = Promise.resolve();

  const common = (connection: NativeConnection): Omit<WorkerOptions, 'taskQueue'> => ({
    connection,
    namespace: link.namespace,
    dataConverter: link.dataConverter,
    activities,
    shutdownGraceTime: deps.stopGraceMs,
    shutdownForceTime: deps.stopGraceMs + 5_000,
  });

  async function create(): Promise<Worker[]> {
    const [connection, codePath] = await Promise.all([link.connection(), workflowBundle()]);
    await prepareNamespace(link, { taskQueue, reconcileSeconds: deps.reconcileSeconds });
    const activityWorker = await Worker.create({
      ...common(connection),
      taskQueue: activityQueueOf(taskQueue),
      maxConcurrentActivityTaskExecutions: deps.maxActivityRuns,
    });
    try {
      const main = await Worker.create({
        ...common(connection),
        taskQueue,
        workflowBundle: { codePath },
        maxConcurrentLocalActivityExecutions: deps.maxInlineRuns,
        // Deliveries; other regular activities run on the other queue.
        maxConcurrentActivityTaskExecutions: deps.maxDeliveryRuns,
        // Measured (docs/benchmarks.md): room for every eager start, and few polls, each of which costs the server.
        maxConcurrentWorkflowTaskExecutions: 100,
        maxConcurrentWorkflowTaskPolls: 4,
        maxCachedWorkflows: 500,
        // A run waits so long for the worker that has it in memory; then any worker takes it up.
        stickyQueueScheduleToStartTimeout: deps.heartbeatMs,
      });
      return [main, activityWorker];
    } catch (error) {
      await run([activityWorker], true);
      throw error;
    }
  }

  async function keepRunning() {
    while (!stopping) {
      try {
        running = await create();
        log.info({ taskQueue }, 'the worker is polling');
        await run(running, stopping);
      } catch (error) {
        if (!stopping) log.warn({ err: error }, 'the worker cannot run yet and will try again');
      }
      running = [];
      if (!stopping) await sleep(RETRY_MS);
    }
  }

  return {
    /** True while tasks are polled. */
    isRunning: (): boolean =>
      running.length > 0 && running.every((worker) => worker.getState() === 'RUNNING'),

    start(): void {
      ended = keepRunning();
    },

    /** Takes no new work and resolves when what runs has ended, or was told to after the grace time. */
    async stop(): Promise<void> {
      stopping = true;
      shutDown(running);
      await ended;
    },
  };
}

const shutDown = (workers: readonly Worker[]) =>
  workers
    .filter((worker) => worker.getState() === 'RUNNING')
    .forEach((worker) => worker.shutdown());

/**
 * Runs workers until all have ended; when one fails the others are shut down. A worker that was created must run,
 * if only to be shut down at once (`release`): until then it holds the connection.
 */
async function run(workers: readonly Worker[], release: boolean): Promise<void> {
  const runs = workers.map((worker) => worker.run().finally(() => shutDown(workers)));
  if (release) shutDown(workers);
  const failed = (await Promise.allSettled(runs)).find((result) => result.status === 'rejected');
  if (failed) throw failed.reason;
}
