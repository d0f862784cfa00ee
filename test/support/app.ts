import { randomBytes } from 'node:crypto';
import { IllegalStateError } from '@temporalio/common';
import type { ConsoleBundle } from '../../api/console/bundle.ts';
import { createApp, allRoutes } from '../../api/app.ts';
import { startServer } from '../../api/server.ts';
import { compose, installRuntime, type Composition } from '../../processes/composition/index.ts';
import { systemScheduleId, temporalScheduleId } from '../../domain/dispatch/workflowIds.ts';
import type { JobType } from '../../domain/jobs/jobType.ts';
import { readConfig } from '../../platform/config.ts';
import { createLog, type Log } from '../../platform/log.ts';
import { loadJobTypeModules } from '../../services/jobTypes/modules/load.ts';
import { errorCheck, responseCheck } from './answerCheck.ts';
import { createClient, type TestClient } from './client.ts';
import { createDatabase, type TestDatabase } from './database.ts';
import { findInvalidEvents } from './eventCheck.ts';

export type TestApp = {
  deps: Composition;
  env: Record<string, string>;
  client: TestClient;
  databaseUrl: string;
  stop(): Promise<void>;
};

/**
 * An interval for the reconcilers, in seconds. Intervals are counted from 1970, and reconcilers are due
 * after 0.3 and 0.7 of each (`temporal/prepare.ts`): in this one the next is hours away, so that tests
 * that call a reconciler are the only ones that do, at any time of the day.
 */
function quietInterval(): number {
  const elapsed = (seconds: number) => (Date.now() / 1_000 / seconds) % 1;
  let seconds = 86_400;
  while (elapsed(seconds) < 0.71 || elapsed(seconds) > 0.95) seconds -= 1;
  return seconds;
}

/** Environment of one test file's processes: its own database and task queue on the shared servers. */
export function testEnv(
  databaseUrl: string,
  env: Record<string, string> = {},
): Record<string, string> {
  return {
    DATABASE_URL: databaseUrl,
    TEMPORAL_ADDRESS: process.env.TEST_TEMPORAL_ADDRESS ?? '',
    // A search answers in full, however slow the machine is.
    HOLDFAST_SEARCH_TIMEOUT_MS: '20000',
    HOLDFAST_TASK_QUEUE: `test-${randomBytes(6).toString('hex')}`,
    HOLDFAST_TRUSTED_GATEWAYS: '127.0.0.0/8',
    HOLDFAST_OUTBOUND_ALLOW: '127.0.0.0/8',
    HOLDFAST_MASTER_KEYS: `test:${Buffer.alloc(32, 7).toString('base64')}`,
    HOLDFAST_PORT: '0',
    // All tests come from one address.
    HOLDFAST_STRANGER_BUDGET: '1000000',
    // Tests of several callers read as fast as they can.
    HOLDFAST_READ_BUDGET_MS: '1000000',
    // Tests stop several statements together; each holds a connection of background work.
    HOLDFAST_DATABASE_POOL: '16',
    HOLDFAST_LOG_LEVEL: process.env.TEST_LOG_LEVEL ?? 'silent',
    HOLDFAST_STOP_GRACE_MS: '2000',
    HOLDFAST_STOP_DELAY_MS: '0',
    HOLDFAST_HEARTBEAT_MS: '1000',
    HOLDFAST_RECONCILE_SECONDS: String(quietInterval()),
    HOLDFAST_CATCH_UP_SECONDS: '86400',
    ...env,
  };
}

/** The least that argon2 allows: the passwords of tests protect nothing. */
const PASSWORD_COST = { memoryCost: 8, timeCost: 1, parallelism: 1 };

type AppOptions = {
  idle?: boolean;
  extraJobTypes?: readonly JobType[];
  /** How often streams check the rights of their callers. */
  accessRecheckMs?: number;
  /** Hashes passwords as the product does. */
  slowPasswords?: boolean;
  /** One that other processes have used. It is dropped with the application. */
  database?: TestDatabase | undefined;
  consoleBundle?: ConsoleBundle;
  /** From how many changed rows of a table on it is restored in bulk. */
  bulkRestoreRows?: number;
  /** In which time a body must arrive. */
  bodyTimeoutMs?: number;
};

/** The SDK's runtime is one for all apps of a file; it ends with the last and is made again for the next. */
function ensureRuntime(log: Log): void {
  try {
    installRuntime(log);
  } catch (error) {
    if (!(error instanceof IllegalStateError)) throw error;
  }
}

/** Temporal is shared by all files: schedules that stayed would go on starting runs. */
export async function deleteTemporalSchedules({
  db,
  temporal,
  config,
}: Composition): Promise<void> {
  const ids: string[] = await db('schedules').whereNull('deleted_at').pluck('id');
  const all = [
    ...ids.map(temporalScheduleId),
    systemScheduleId(config.taskQueue, 'reconcile'),
    systemScheduleId(config.taskQueue, 'reconcileSchedules'),
  ];
  await temporal.call(20_000, (client) =>
    Promise.allSettled(all.map((id) => client.schedule.getHandle(id).delete())),
  );
}

/**
 * The whole product in this process, against a database of its own. Every response that a test receives is compared
 * with the schema that its route declares.
 */
export async function startApp(
  env: Record<string, string> = {},
  options: AppOptions = {},
): Promise<TestApp> {
  const database = options.database ?? (await createDatabase());
  const app = await startAppOn(database.url, env, options);
  return {
    ...app,
    async stop() {
      const invalidEvents = await findInvalidEvents(app.deps.db);
      if (!options.idle) await deleteTemporalSchedules(app.deps);
      await app.stop();
      await database.drop();
      if (invalidEvents.length > 0)
        throw new Error(
          `Events have data that their schema does not allow: ${invalidEvents.slice(0, 5).join('; ')}`,
        );
    },
  };
}

/** The same on an existing database. An `idle` application answers requests; other processes do the background work. */
export async function startAppOn(
  databaseUrl: string,
  env: Record<string, string> = {},
  {
    idle = false,
    extraJobTypes = [],
    slowPasswords = false,
    accessRecheckMs = 300,
    consoleBundle,
    bulkRestoreRows,
    bodyTimeoutMs,
  }: AppOptions = {},
): Promise<TestApp> {
  const fullEnv = testEnv(databaseUrl, env);
  const config = readConfig(fullEnv);
  const log = createLog(config.logLevel, false);
  // Made and never used, it would keep the process from ending.
  if (!idle) ensureRuntime(log);
  const deps = compose(config, log, {
    modules: await loadJobTypeModules(config.jobTypeModules),
    extraJobTypes,
    ...(!slowPasswords && { passwordCost: PASSWORD_COST }),
    bulkRestoreRows,
  });
  const stopping = new AbortController();
  const version = 'test';
  const checkResponse = responseCheck(allRoutes(deps, version));
  const app = createApp(deps, {
    version,
    shutdownSignal: stopping.signal,
    consoleBundle,
    onResponse: checkResponse,
    onError: errorCheck,
    accessRecheckMs,
  });
  const server = await startServer(app, { ...config, ...(bodyTimeoutMs && { bodyTimeoutMs }) });
  deps.ownEndpoints.add({ host: config.host, port: server.port });
  deps.readiness.start();
  if (!idle) deps.start();
  return {
    deps,
    env: fullEnv,
    databaseUrl,
    client: createClient(`http://127.0.0.1:${server.port}`),
    async stop() {
      stopping.abort();
      await server.stop(1_000);
      await deps.stopHealth();
      await deps.stop();
    },
  };
}
