import { NativeConnection, Worker } from '@temporalio/worker';
import type { DataConverter } from '@temporalio/common';
import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { errorMessage } from '../domain/shared/errorMessage.ts';
import type { Log } from '../platform/log.ts';
import { activitySpans } from '../platform/tracing/activitySpans.ts';
import { createActivity, FORCE_AFTER_MS, runnerStopRequest } from './activity.ts';
import { createCatalog, type Catalog } from './catalog.ts';
import { missingForAll } from './command/capabilities.ts';
import { createPreparer, type Preparer } from './command/preparedRun.ts';
import { openWorkFolder, type WorkFolder } from './command/runFolder.ts';
import { readTokenFile, type RunnerConfig } from './config.ts';
import { keepHeartbeat } from './heartbeat.ts';
import { createTemporalProbe } from './temporalProbe.ts';
import { createAnnouncer, type Announcer } from './protocol/announcer.ts';
import { createRunnerApi, type AnnounceAnswer, type RunnerApi } from './protocol/api.ts';

export type Runner = {
  /** True while every pool is announced and polled. */
  isRunning(): boolean;
  /** Stops polling, waits for running commands within the grace period, and then stops them. */
  stop(): Promise<void>;
};

type Deps = {
  config: RunnerConfig;
  /** The connection to Temporal, which the caller closes. */
  temporal: {
    nativeConnection(): Promise<NativeConnection>;
    check(deadlineMs: number): Promise<void>;
    dataConverter: DataConverter;
  };
  log: Log;
};

const FIRST_PAUSE_MS = 1_000;
const MAX_PAUSE_MS = 15_000;

/**
 * Starts a runner: it announces the types of its folders, and runs their jobs. Error: this machine lacks
 * what every command needs, or the work folder is not writable.
 */
export async function startRunner({ config, temporal, log }: Deps): Promise<Runner> {
  const missing = await missingForAll(config.wrapper);
  if (missing.length > 0) throw new Error(`The runner cannot run commands.\n${missing.join('\n')}`);
  const workFolder = await openWorkFolder(config.workFolder, (folder, error) =>
    log.warn({ folder, err: error }, 'a folder of a command could not be removed'),
  );
  const endHeartbeat = await keepHeartbeat(workFolder.folder);
  const { typeFolders: folders, pools, secretsFolder, wrapper, url, token, tokenFile } = config;
  const readToken = tokenFile === undefined ? undefined : () => readTokenFile(tokenFile);
  const api = createRunnerApi({ url, token, ...(readToken && { readToken }) });
  const preparer = createPreparer(workFolder);
  const obstacle = () => preparer.problem();
  const catalog = createCatalog({ folders, pools, secretsFolder, wrapper, obstacle, log });
  const runnerId = randomUUID();
  const stopping = new AbortController();
  const commandStop = new AbortController();
  const running = pools.map((pool) =>
    servePool({
      pool,
      config,
      temporal,
      log: log.child({ pool }),
      api,
      catalog,
      runnerId,
      workFolder,
      preparer,
      stopping: stopping.signal,
      commandStop: commandStop.signal,
    }),
  );
  let stopped: Promise<void> | undefined;
  return {
    isRunning: () => running.every(({ isRunning }) => isRunning()),
    stop: () =>
      (stopped ??= (async () => {
        stopping.abort();
        const grace = setTimeout(() => commandStop.abort(runnerStopRequest()), config.stopGraceMs);
        await Promise.all(running.map(({ ended }) => ended));
        clearTimeout(grace);
        endHeartbeat();
        await workFolder.remove();
        await api.close();
      })()),
  };
}

type PoolDeps = Deps & {
  pool: string;
  api: RunnerApi;
  catalog: Catalog;
  runnerId: string;
  workFolder: WorkFolder;
  preparer: Preparer;
  stopping: AbortSignal;
  /** See `createActivity`. */
  commandStop: AbortSignal;
};

/** Creates the worker of a pool, which the API has named the queue of. */
async function createWorker(
  { config, temporal, workFolder, ...deps }: PoolDeps,
  announcer: Announcer,
  { taskQueue, namespace }: AnnounceAnswer,
): Promise<Worker> {
  const { secretsFolder, wrapper, slots, stopGraceMs } = config;
  const activity = createActivity({
    ...deps,
    host: { workFolder, secretsFolder, wrapper },
    announceChange: announcer.announceChange,
  });
  return Worker.create({
    connection: await temporal.nativeConnection(),
    namespace,
    taskQueue,
    dataConverter: temporal.dataConverter,
    // The name of an activity is that of its type, which may be declared later.
    activities: { default: activity },
    interceptors: { activity: [activitySpans] },
    maxConcurrentActivityTaskExecutions: slots,
    maxHeartbeatThrottleInterval: 1_000,
    defaultHeartbeatThrottleInterval: 1_000,
    shutdownGraceTime: stopGraceMs,
    shutdownForceTime: stopGraceMs + FORCE_AFTER_MS,
  });
}

/** Announces and polls one pool until the runner stops. */
function servePool(deps: PoolDeps) {
  const { pool, config, catalog, api, runnerId, stopping, temporal, log } = deps;
  const announcer = createAnnouncer({
    ...{ api, catalog, runnerId, pool, slots: config.slots, log },
    reachesTemporal: createTemporalProbe({ check: temporal.check, log }),
  });
  let worker: Worker | undefined;

  async function serveOnce() {
    const answer = await announcer.announce();
    const created = await createWorker(deps, announcer, answer);
    log.info({ taskQueue: answer.taskQueue }, 'the runner is polling');
    const ended = new AbortController();
    const reporting = announcer.keepReporting(ended.signal);
    const stop = () => {
      if (created.getState() === 'RUNNING') created.shutdown();
    };
    stopping.addEventListener('abort', stop, { once: true });
    try {
      worker = created;
      const run = created.run();
      if (stopping.aborted) stop();
      await run;
    } finally {
      worker = undefined;
      stopping.removeEventListener('abort', stop);
      ended.abort();
      await reporting;
    }
  }

  async function serve() {
    let pauseMs = FIRST_PAUSE_MS;
    while (!stopping.aborted) {
      const startedAt = performance.now();
      try {
        await serveOnce();
      } catch (error) {
        if (stopping.aborted) break;
        const reason = errorMessage(error);
        log.warn({ reason }, 'the runner cannot run yet and will try again');
      }
      const hasRun = performance.now() - startedAt > MAX_PAUSE_MS;
      pauseMs = hasRun ? FIRST_PAUSE_MS : Math.min(pauseMs * 2, MAX_PAUSE_MS);
      await sleep(pauseMs, undefined, { signal: stopping }).catch(() => undefined);
    }
    await announcer.leave();
  }

  return { ended: serve(), isRunning: () => worker?.getState() === 'RUNNING' };
}
