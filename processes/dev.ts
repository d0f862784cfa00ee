import './beginning.ts';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { errorMessage } from '../domain/shared/errorMessage.ts';
import { isClientRefused, isOutage } from '../domain/shared/outage.ts';
import { migrateUp } from '../db/core/migrate.ts';
import { openDatabase } from '../db/core/knex.ts';
import { createConsole, type TerminalConsole } from '../dev/console.ts';
import { prepareDataFolder } from '../dev/dataFolder.ts';
import { freePort } from '../dev/freePort.ts';
import { FolderInUse, lockFolder } from '../dev/lock.ts';
import { masterKeys } from '../dev/masterKeys.ts';
import { startStack, type Stack } from '../dev/stack.ts';
import { buildConsole } from '../ui/build.ts';
import { ConfigError, readConfig, type Config } from '../platform/config.ts';
import { createLog, type Log } from '../platform/log.ts';
import { DEFAULT_PORT } from '../platform/defaultPort.ts';
import { endpointOf } from '../platform/ownEndpoints.ts';
import { startTracing } from '../platform/tracing.ts';
import { APP_VERSION } from '../platform/version.ts';
import { loadJobTypeModules } from '../services/jobTypes/modules/load.ts';
import { collectSdkMetrics, installRuntime, type Composition } from './composition/index.ts';
import { answerOptions } from './options.ts';
import { shutdownOnSignals } from './shutdown.ts';
import { startLocalRunner } from './localRunner.ts';
import { startProcess } from './start.ts';

const LOOPBACK = '127.0.0.0/8,::1/128';
const LOOPBACK_HOSTS = 'localhost,127.0.0.1,[::1]';
/** Where receivers of webhooks and targets of `http.request` may listen while one tries Holdfast. */
const TRIAL_TARGETS = '127.0.0.0/8:9000-9099,[::1/128]:9000-9099';

type StartContext = {
  folder: string;
  log: Log;
  terminal: TerminalConsole;
  /** Everything that was started, in reverse order of its end. */
  resources: AsyncDisposableStack;
  /** Aborted when the start is to be given up. */
  signal: AbortSignal;
  /** Sets what a second `npm start` on the same folder prints. */
  describe(text: string): void;
  /** Called when one of the servers ends without being stopped. */
  onServerFailure(message: string): void;
};

/** `npm start`: runs PostgreSQL, Temporal, the API, a worker and a runner on this machine. */
async function main(): Promise<void> {
  process.exitCode = answerOptions(
    process.argv.slice(2),
    'Starts PostgreSQL, Temporal, the API, a worker and a runner on this machine.',
  );
  if (process.exitCode !== undefined) return;
  const terminal = createConsole();
  const folder = await prepareDataFolder(
    path.resolve(process.env.HOLDFAST_DATA_DIR ?? '.holdfast'),
  );
  let description = `Holdfast is starting on ${folder}.`;
  const resources = new AsyncDisposableStack();
  const lock = await lockFolder(folder, () => description);
  resources.defer(() => lock.release());

  // Configuration errors are reported before anything is started.
  const { logLevel, instance, jobTypeModules } = readConfig({
    DATABASE_URL: 'postgres://unused',
    ...process.env,
  });
  await loadJobTypeModules(jobTypeModules);
  const log = createLog(logLevel, undefined, { role: 'all', instance });
  const shutdown = new AbortController();
  const started = Promise.withResolvers<undefined>();
  let stopped: Promise<void> | undefined;
  // Waits for an unfinished start: nothing is started while the rest is stopped.
  const stop = () =>
    (stopped ??= (async () => {
      description = `Holdfast is stopping on ${folder}.`;
      shutdown.abort();
      await started.promise;
      await resources.disposeAsync();
    })());
  shutdownOnSignals(log, stop);

  try {
    await start({
      folder,
      log,
      terminal,
      resources,
      signal: shutdown.signal,
      describe: (text) => (description = text),
      onServerFailure(message) {
        if (shutdown.signal.aborted) return;
        terminal.line(`${message}. Stopping.`);
        void stop().finally(() => process.exit(1));
      },
    });
    started.resolve(undefined);
  } catch (error) {
    started.resolve(undefined);
    // The shutdown that aborted the start also ends the process.
    if (shutdown.signal.aborted) return;
    await stop();
    throw error;
  }
}

async function start(context: StartContext): Promise<void> {
  const { folder, log, terminal, resources, signal, describe } = context;
  const startedAt = Date.now();
  const consoleBuilt = buildConsoleIfPossible(terminal);
  const stack = await startStack({ folder, env: process.env, terminal, signal });
  resources.defer(() => stack.stop());
  void stack.failed.then((message) => context.onServerFailure(message));

  const config = await readStackConfig(folder, stack);
  const identity = { role: 'all', instance: config.instance, version: APP_VERSION };
  resources.defer(
    await startTracing(config.tracing, identity, (message) => log.warn({ message }, 'traces')),
  );
  installRuntime(log, { metrics: collectSdkMetrics() });
  await retryWhileUnavailable(() => migrate(config.databaseUrl, log), signal);
  await consoleBuilt;
  const running = await startProcess(config, log);
  const temporalUi = stack.temporalUi && endpointOf(stack.temporalUi);
  if (temporalUi) running.deps.ownEndpoints.add(temporalUi);
  resources.defer(() => running.stop());
  void running.refused.then(({ message }) => context.onServerFailure(message));

  const base = `http://127.0.0.1:${running.port}`;
  describe(`Holdfast already runs on ${folder}: ${base}`);
  await waitUntilReady(running.deps, terminal, signal);
  const firstAdmin = await createFirstAdmin(running.deps, terminal, signal);
  await startRunnerIfPossible(context, running.deps, stack, base);
  terminal.line(
    welcome({
      base,
      folder,
      temporal: config.temporal.address,
      temporalUi: stack.temporalUi,
      trusted: config.trustedGateways,
      firstAdmin,
      seconds: (Date.now() - startedAt) / 1_000,
    }),
  );
}

/** Everything but the console works without it, for example where `npm ci --omit=dev` has omitted Vite. */
async function buildConsoleIfPossible(terminal: TerminalConsole): Promise<void> {
  try {
    await buildConsole();
  } catch (error) {
    const reason = errorMessage(error);
    terminal.line(`The console could not be built, so only the API is served: ${reason}`);
  }
}

/**
 * The configuration of the process: defaults for this machine, the environment, and the servers.
 */
async function readStackConfig(folder: string, stack: Stack): Promise<Config> {
  const { HOLDFAST_DATA_DIR, ...env } = process.env;
  return readConfig({
    HOLDFAST_TRUSTED_GATEWAYS: LOOPBACK,
    // A page in a browser of this machine may have changed what its own name means.
    HOLDFAST_GATEWAY_HOSTS: LOOPBACK_HOSTS,
    HOLDFAST_OUTBOUND_ALLOW: TRIAL_TARGETS,
    HOLDFAST_MASTER_KEYS: await masterKeys(folder),
    HOLDFAST_BACKUP_DIR: path.join(folder, 'backups'),
    HOLDFAST_TEMPORAL_UI_URL: stack.temporalUi,
    // No proxy watches it.
    HOLDFAST_STOP_DELAY_MS: '0',
    ...env,
    HOLDFAST_PORT: env.HOLDFAST_PORT ?? String(await freePort(DEFAULT_PORT)),
    DATABASE_URL: stack.databaseUrl,
    TEMPORAL_ADDRESS: stack.temporalAddress,
  });
}

async function migrate(databaseUrl: string, log: Log): Promise<void> {
  const db = openDatabase({ url: databaseUrl, poolSize: 3, statementTimeoutMs: 0, log });
  try {
    const migrations = await migrateUp(db);
    if (migrations.length > 0) log.info({ migrations }, 'database schema migrated');
  } finally {
    await db.destroy();
  }
}

const DATABASE_LIMIT_MS = 120_000;
const RETRY_MS = 500;

/**
 * Repeats `work` while it fails because PostgreSQL cannot be reached or is slow to accept
 * connections, as on a busy machine. Errors: any other; the reason of `signal`.
 */
async function retryWhileUnavailable<T>(work: () => Promise<T>, signal: AbortSignal): Promise<T> {
  const deadline = Date.now() + DATABASE_LIMIT_MS;
  for (;;) {
    signal.throwIfAborted();
    try {
      return await work();
    } catch (error) {
      if (!isOutage(error) || isClientRefused(error) || Date.now() > deadline) throw error;
      await sleep(RETRY_MS, undefined, { signal });
    }
  }
}

const READY_LIMIT_MS = 60_000;

/** Waits until every component is ready. After a minute it prints which one is not, and returns. */
async function waitUntilReady(
  { readiness }: Composition,
  terminal: TerminalConsole,
  signal: AbortSignal,
): Promise<void> {
  const deadline = Date.now() + READY_LIMIT_MS;
  for (;;) {
    const report = readiness.report();
    if (report.status === 'ready') return;
    if (Date.now() > deadline) {
      terminal.line(`Not every component is ready yet: ${JSON.stringify(report)}`);
      return;
    }
    await sleep(50, undefined, { signal });
  }
}

type FirstAdmin = { username: string; oneTimePassword: string };

/** Creates the first administrator. A failure does not stop what already runs. */
async function createFirstAdmin(
  { bootstrapAdmin }: Composition,
  terminal: TerminalConsole,
  signal: AbortSignal,
): Promise<FirstAdmin | undefined> {
  try {
    return await retryWhileUnavailable(() => bootstrapAdmin.createFirst(), signal);
  } catch (error) {
    signal.throwIfAborted();
    const reason = errorMessage(error);
    terminal.line(
      `The first administrator could not be created (${reason}). Run npm run admin to create one.`,
    );
    return undefined;
  }
}

/** Everything but declared commands works without a runner. */
async function startRunnerIfPossible(
  { folder, terminal, resources, signal }: StartContext,
  deps: Composition,
  stack: Stack,
  base: string,
): Promise<void> {
  try {
    const settings = { folder, base, temporalAddress: stack.temporalAddress };
    const runner = await startLocalRunner(deps, settings, (pid) =>
      stack.recordServer({ name: 'runner', pid, signal: 'SIGTERM' }),
    );
    resources.defer(() => runner.stop());
    void runner.ended.then((how) => {
      if (!signal.aborted) terminal.line(`The runner ${how}; see ${runner.logFile}`);
    });
  } catch (error) {
    signal.throwIfAborted();
    const reason = errorMessage(error);
    terminal.line(`The runner could not be started, so declared commands do not run: ${reason}`);
  }
}

type Welcome = {
  base: string;
  folder: string;
  temporal: string;
  temporalUi: string | undefined;
  trusted: readonly string[];
  seconds: number;
  firstAdmin: FirstAdmin | undefined;
};

const firstLogin = (admin: FirstAdmin | undefined) =>
  admin
    ? `
The first administrator was created. The password is shown only now, and is valid for 72 hours:

  User name          ${admin.username}
  One-time password  ${admin.oneTimePassword}
`
    : '';

const welcome = ({ base, folder, temporal, temporalUi, trusted, seconds, firstAdmin }: Welcome) => `
Holdfast is ready after ${seconds.toFixed(1)} s.

  Console            ${base}
  API                ${base}/api
  API reference      ${base}/api/docs
  Temporal           ${temporal}
  Temporal Web UI    ${temporalUi ?? 'that of your Temporal server'}
  Data               ${folder}
  Job types          ${path.join(folder, 'job-types')}, examples/job-types
${firstLogin(firstAdmin)}
Identity headers are trusted from ${trusted.join(' and ')}: a client there can act as any user.
Press Ctrl-C to stop everything. The data is kept.
`;

main().catch((error: unknown) => {
  const isExpected = error instanceof ConfigError || error instanceof FolderInUse;
  const message = errorMessage(error);
  process.stderr.write(`${isExpected ? message : `Holdfast cannot start: ${message}`}\n`);
  process.exit(1);
});
