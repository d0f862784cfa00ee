import type { Info } from '@temporalio/activity';
import { defaultPayloadConverter, type Headers } from '@temporalio/common';
import {
  NativeConnection,
  Worker,
  type ActivityInterceptorsFactory,
  type WorkerOptions,
} from '@temporalio/worker';
import { setTimeout as sleep } from 'node:timers/promises';
import {
  tenantKey,
  useConnectionsFor,
  useConnectionsForProcess,
} from '../platform/connectionUser.ts';
import type { Log } from '../platform/log.ts';
import { createLoop } from '../platform/loop.ts';
import { activitySpans } from '../platform/tracing/activitySpans.ts';
import { HEARTBEATS_PER_TIMEOUT } from '../activities/heartbeat.ts';
import { workflowBundle, type StoredBundle } from './bundle.ts';
import { SYSTEM_FAIRNESS_KEY } from '../domain/dispatch/tasks.ts';
import { activityTaskQueue } from '../domain/dispatch/workflowIds.ts';
import type { Deployment } from '../platform/config.ts';
import type { TemporalConnection } from './connection.ts';
import { createVersionState, deploymentOptions } from './deployment.ts';
import { TENANT_HEADER } from './workflows/shared/tenantHeader.ts';
import { POLLERS } from './pollers.ts';
import { ensureReconcileSchedules, ensureSearchAttributes } from './prepare.ts';

type Deps = {
  temporal: TemporalConnection;
  log: Log;
  taskQueue: string;
  activities: object;
  heartbeatMs: number;
  stopGraceMs: number;
  maxInlineRuns: number;
  maxActivityRuns: number;
  maxDeliveryRuns: number;
  reconcileSeconds: number;
  /** Without one, workers of all versions share all work. */
  deployment: Deployment | undefined;
};

const RETRY_MS = 1_000;

/** Activities of the system itself that run beside those of jobs: reconcilers, approvals, the end of backups. */
const SYSTEM_RUNS = 10;

/** The namespace is prepared again after as many rounds of the reconcilers, and at least this often, in seconds. */
const PREPARE_AFTER_ROUNDS = 5;
const MAX_PREPARE_SECONDS = 300;
/** After a failure sooner: without the schedules no reconciler runs. */
const PREPARE_RETRY_MS = 10_000;

/** The tenant for which an activity runs: its fairness key, or what the workflow has sent with it. */
function tenantOf(info: Info, headers: Headers): string {
  if (info.priority?.fairnessKey) return info.priority.fairnessKey;
  const sent = headers[TENANT_HEADER];
  return sent ? defaultPayloadConverter.fromPayload<string>(sent) : '';
}

/** An activity uses the database for the tenant of its workflow, those of the system for the process. */
const connectionsForTenant: ActivityInterceptorsFactory = ({ info }) => ({
  inbound: {
    execute(input, next) {
      const tenant = tenantOf(info, input.headers);
      const work = () => next(input);
      return tenant === SYSTEM_FAIRNESS_KEY
        ? useConnectionsForProcess(work)
        : useConnectionsFor({ part: 'background', key: tenantKey(tenant) }, work);
    },
  },
});

/**
 * The workers of one process. One runs workflows, inline work and deliveries; the other runs long
 * and network work on a task queue of its own. Each kind of work has its own concurrency limit. The
 * workers start when Temporal is reachable, and restart after a failure.
 */
export function createWorkers(deps: Deps) {
  const { temporal, log, taskQueue, activities } = deps;
  let running: Worker[] = [];
  let bundle: StoredBundle | undefined;
  let stopping = false;
  let stopped: Promise<void> = Promise.resolve();
  let isPrepared = true;
  const version = createVersionState(temporal, deps.deployment, log);

  const prepareSchedules = () =>
    ensureReconcileSchedules(temporal, { taskQueue, reconcileSeconds: deps.reconcileSeconds });

  /** Waits for a part of the preparation that workers can do without. A failure is logged once, until it succeeds. */
  async function tolerate(preparation: Promise<void>): Promise<void> {
    try {
      await preparation;
      isPrepared = true;
    } catch (error) {
      if (isPrepared && !stopping)
        log.warn({ err: error }, 'the namespace of Temporal could not be prepared');
      isPrepared = false;
    }
  }

  /** Repairs what the namespace has lost since the workers started, or could not get then. */
  async function prepareAgain(): Promise<false | number> {
    if (running.length > 0) await tolerate(ensureSearchAttributes(temporal).then(prepareSchedules));
    return isPrepared ? false : PREPARE_RETRY_MS;
  }
  const prepareSeconds = Math.min(
    deps.reconcileSeconds * PREPARE_AFTER_ROUNDS,
    MAX_PREPARE_SECONDS,
  );
  const preparing = createLoop(
    { name: 'namespace', everyMs: prepareSeconds * 1_000, log },
    prepareAgain,
  );

  const commonOptions = (connection: NativeConnection): Omit<WorkerOptions, 'taskQueue'> => ({
    connection,
    namespace: temporal.namespace,
    dataConverter: temporal.dataConverter,
    activities,
    interceptors: { activity: [activitySpans, connectionsForTenant] },
    shutdownGraceTime: deps.stopGraceMs,
    shutdownForceTime: deps.stopGraceMs + 5_000,
    // The SDK would send a heartbeat only after four fifths of the timeout.
    maxHeartbeatThrottleInterval: Math.floor(deps.heartbeatMs / HEARTBEATS_PER_TIMEOUT),
    workflowTaskPollerBehavior: POLLERS,
    activityTaskPollerBehavior: POLLERS,
    ...deploymentOptions(deps.deployment),
  });

  /** Bundles once in a process, however often its workers restart. */
  async function loadBundle(): Promise<StoredBundle> {
    if (bundle) return bundle;
    bundle = await workflowBundle();
    if ('writeError' in bundle)
      log.warn(
        { err: bundle.writeError },
        'the workflows were bundled in memory, as at each start; npm run bundle does it once',
      );
    return bundle;
  }

  async function createAll(): Promise<Worker[]> {
    const [connection, loaded] = await Promise.all([temporal.nativeConnection(), loadBundle()]);
    await ensureSearchAttributes(temporal);
    // The part of the server that runs schedules may not answer, and the rest of the work must not wait for it.
    await tolerate(prepareSchedules());
    const activityWorker = await Worker.create({
      ...commonOptions(connection),
      taskQueue: activityTaskQueue(taskQueue),
      // Its jobs have as many slots as they may run; they must not hold up what ends, repairs and creates others.
      maxConcurrentActivityTaskExecutions: deps.maxActivityRuns + SYSTEM_RUNS,
    });
    try {
      const workflowWorker = await Worker.create({
        ...commonOptions(connection),
        taskQueue,
        workflowBundle: loaded,
        maxConcurrentLocalActivityExecutions: deps.maxInlineRuns,
        // Webhook deliveries. Other regular activities use the other task queue.
        maxConcurrentActivityTaskExecutions: deps.maxDeliveryRuns,
        // Enough for every eager start.
        maxConcurrentWorkflowTaskExecutions: 100,
        maxCachedWorkflows: 500,
        // How long a workflow task waits for the worker that has the workflow in its cache.
        stickyQueueScheduleToStartTimeout: deps.heartbeatMs,
      });
      return [workflowWorker, activityWorker];
    } catch (error) {
      await run([activityWorker], true);
      throw error;
    }
  }

  async function keepRunning() {
    while (!stopping) {
      try {
        running = await createAll();
        if (!isPrepared) preparing.wake();
        log.info({ taskQueue, build: deps.deployment?.buildId }, 'the worker is polling');
        version.onPolling();
        await run(running, stopping);
      } catch (error) {
        if (!stopping) log.warn({ err: error }, 'the worker cannot run yet and will try again');
      }
      running = [];
      if (!stopping) await sleep(RETRY_MS);
    }
  }

  return {
    /** True while the workers poll for tasks. */
    isRunning: (): boolean =>
      running.length > 0 && running.every((worker) => worker.getState() === 'RUNNING'),

    /** False while the workers of another version get the work. */
    isCurrentVersion: version.isCurrent,

    start(): void {
      stopped = keepRunning();
      version.start();
      preparing.start();
    },

    /**
     * Stops polling. Resolves when running work has ended; after the grace time it is cancelled.
     */
    async stop(): Promise<void> {
      stopping = true;
      shutDown(running);
      void preparing.stop();
      void version.stop();
      await stopped;
    },
  };
}

const shutDown = (workers: readonly Worker[]) =>
  workers
    .filter((worker) => worker.getState() === 'RUNNING')
    .forEach((worker) => worker.shutdown());

/**
 * Runs workers until all have stopped; if one fails, the others are shut down. A created worker
 * must be run, since it holds the connection: `shutDownImmediately` only releases it.
 */
async function run(workers: readonly Worker[], shutDownImmediately: boolean): Promise<void> {
  const runs = workers.map((worker) => worker.run().finally(() => shutDown(workers)));
  if (shutDownImmediately) shutDown(workers);
  const failed = (await Promise.allSettled(runs)).find((result) => result.status === 'rejected');
  if (failed) throw failed.reason;
}
