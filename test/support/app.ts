import { randomBytes } from 'node:crypto';
import { IllegalStateError } from '@temporalio/common';
import { createApp, allRoutes } from '../../api/app.ts';
import { serve } from '../../api/server.ts';
import { compose, installRuntime, type Deps } from '../../composition.ts';
import type { JobType } from '../../domain/jobType.ts';
import { readConfig } from '../../platform/config.ts';
import { createLog, type Log } from '../../platform/log.ts';
import { answerCheck } from './answerCheck.ts';
import { createClient, type TestClient } from './client.ts';
import { createDatabase } from './database.ts';
import { wrongEvents } from './eventCheck.ts';

export type TestApp = {
  deps: Deps;
  env: Record<string, string>;
  client: TestClient;
  databaseUrl: string;
  stop(): Promise<void>;
};

/** Environment of one test file's processes: its own database and task queue on the shared servers. */
export function testEnv(
  databaseUrl: string,
  env: Record<string, string> = {},
): Record<string, string> {
  return {
    DATABASE_URL: databaseUrl,
    TEMPORAL_ADDRESS: process.env.TEST_TEMPORAL_ADDRESS ?? '',
    HOLDFAST_TASK_QUEUE: `test-${randomBytes(6).toString('hex')}`,
    HOLDFAST_TRUSTED_GATEWAYS: '127.0.0.0/8',
    HOLDFAST_OUTBOUND_ALLOW: '127.0.0.0/8',
    HOLDFAST_MASTER_KEYS: `test:${Buffer.alloc(32, 7).toString('base64')}`,
    HOLDFAST_PORT: '0',
    HOLDFAST_LOG_LEVEL: process.env.TEST_LOG_LEVEL ?? 'silent',
    HOLDFAST_STOP_GRACE_MS: '2000',
    HOLDFAST_HEARTBEAT_MS: '1000',
    HOLDFAST_RECONCILE_SECONDS: '3600',
    HOLDFAST_SWEEP_SECONDS: '3600',
    ...env,
  };
}

/** The SDK's runtime is one for all apps of a file; it ends with the last and is made again for the next. */
function prepareRuntime(log: Log): void {
  try {
    installRuntime(log);
  } catch (error) {
    if (!(error instanceof IllegalStateError)) throw error;
  }
}

/** Temporal is shared by all files: schedules that stayed would go on firing. */
async function forgetSchedules({ db, link }: Deps): Promise<void> {
  const ids: string[] = await db('schedules').whereNull('deleted_at').pluck('id');
  if (ids.length === 0) return;
  await link.call(20_000, (client) =>
    Promise.allSettled(ids.map((id) => client.schedule.getHandle(`schedule:${id}`).delete())),
  );
}

/**
 * The whole product in this process, against a database of its own. Every answer that a test gets is compared
 * with the schema that its route declares.
 */
export async function startApp(
  env: Record<string, string> = {},
  options: { idle?: boolean } = {},
): Promise<TestApp> {
  const database = await createDatabase();
  const app = await startAppOn(database.url, env, options);
  return {
    ...app,
    async stop() {
      const wrong = await wrongEvents(app.deps.db);
      await forgetSchedules(app.deps);
      await app.stop();
      await database.drop();
      if (wrong.length > 0)
        throw new Error(
          `Events tell what their schema does not know: ${wrong.slice(0, 5).join('; ')}`,
        );
    },
  };
}

/** The same on a database that somebody else made. An `idle` one answers, and leaves what follows to other processes. */
export async function startAppOn(
  databaseUrl: string,
  env: Record<string, string> = {},
  { idle = false, moreJobTypes = [] }: { idle?: boolean; moreJobTypes?: readonly JobType[] } = {},
): Promise<TestApp> {
  const fullEnv = testEnv(databaseUrl, env);
  const config = readConfig(fullEnv);
  const log = createLog(config.logLevel, false);
  // Made and never used, it would keep the process from ending.
  if (!idle) prepareRuntime(log);
  const deps = compose(config, log, { moreJobTypes });
  const stopping = new AbortController();
  const version = 'test';
  const check = answerCheck(allRoutes(deps, version));
  const app = createApp(deps, {
    version,
    stopping: stopping.signal,
    onAnswer: check,
    watchMs: 300,
  });
  const server = await serve(app, config);
  if (!idle) deps.start();
  return {
    deps,
    env: fullEnv,
    databaseUrl,
    client: createClient(`http://127.0.0.1:${server.port}`),
    async stop() {
      stopping.abort();
      await server.stop(1_000);
      await deps.stop();
    },
  };
}
