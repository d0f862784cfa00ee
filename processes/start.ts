import { setTimeout as sleep } from 'node:timers/promises';
import type Koa from 'koa';
import { createApp, createOperationsApp } from '../api/app.ts';
import { readConsoleBundle } from '../api/console/bundle.ts';
import { startServer, type HttpServer } from '../api/server.ts';
import { ConfigError, type Config } from '../platform/config.ts';
import type { Log } from '../platform/log.ts';
import { APP_VERSION as version } from '../platform/version.ts';
import { loadJobTypeModules } from '../services/jobTypes/modules/load.ts';
import { findConsoleBundle } from '../ui/build.ts';
import { compose, type Composition } from './composition/index.ts';
import { reportMissingKeys } from './missingKeys.ts';
import { warnOfUnknown } from './shutdown.ts';
import { startWithSchema } from './startWithSchema.ts';

export type RunningProcess = {
  deps: Composition;
  /** Port of the API. */
  port: number;
  /** Resolves, with the reason, if the schema becomes too new for this version: the process must stop. */
  refused: Promise<Error>;
  /** Finishes running requests and tasks within the grace period, and closes all connections. */
  stop(): Promise<void>;
};

/**
 * Starts everything that a process does by its role. The API needs the job types of modules as workers
 * do: it checks payloads, and hides their secrets. Errors: `ConfigError`, also if it cannot listen; nothing
 * is left running then.
 */
export async function startProcess(config: Config, log: Log): Promise<RunningProcess> {
  warnOfUnknown(config, log);
  const modules = await loadJobTypeModules(config.jobTypeModules);
  const deps = compose(config, log, { modules });
  const resources = new AsyncDisposableStack();
  resources.defer(() => deps.stop());
  /** No work begins any more; and, some seconds later, no request. */
  const [ending, shutdown] = [new AbortController(), new AbortController()];
  resources.defer(() => deps.stopHealth());
  try {
    await deps.connectionCheck.beforeStart();
    deps.startHealth();
    const consoleBundle = await readConsole(config, log);
    const api = createApp(deps, { version, shutdownSignal: shutdown.signal, consoleBundle });
    const servers = [await listen(api, config, 'HOLDFAST_PORT')];
    resources.defer(() => stopAll(servers, config.stopGraceMs));
    if (config.metricsPort > 0) {
      const { host, keepAliveMs, metricsPort: port } = config;
      servers.push(
        await listen(
          createOperationsApp(deps),
          { host, port, keepAliveMs },
          'HOLDFAST_METRICS_PORT',
        ),
      );
    }
    for (const { port } of servers) deps.ownEndpoints.add({ host: config.host, port });
    const work = startWithSchema(deps, ending.signal);
    void reportMissingKeys(deps, log, ending.signal);
    const port = servers[0]?.port ?? config.port;
    log.info({ host: config.host, port }, 'listening');
    return {
      deps,
      port,
      refused: work.refused,
      async stop() {
        // Requests may still commit, and commits are dispatched to Temporal: that stops last.
        ending.abort();
        const closeServers = async () => {
          await announceStop(deps, servers, log);
          shutdown.abort();
          await stopAll(servers, config.stopGraceMs);
        };
        await Promise.all([closeServers(), work.stop(), deps.stopWorkers()]);
        await deps.stopHealth();
        await deps.stop();
        log.info('stopped');
      },
    };
  } catch (error) {
    ending.abort();
    shutdown.abort();
    await resources.disposeAsync();
    throw error;
  }
}

const WHY_NOT: Readonly<Record<string, string>> = {
  EADDRINUSE: 'another process has this port; each process of a machine needs one of its own',
  EADDRNOTAVAIL: 'this machine does not have the address of HOLDFAST_HOST',
  EACCES: 'the user of this process may not use this port',
};

/** Serves `app`. Error: `ConfigError`, which names the variable, if the system refuses the address. */
async function listen(app: Koa, address: Parameters<typeof startServer>[1], variable: string) {
  try {
    return await startServer(app, address);
  } catch (error) {
    const { code = '' } = error as NodeJS.ErrnoException;
    if (!WHY_NOT[code]) throw error;
    const { host, port } = address;
    throw new ConfigError(
      `${variable}: cannot listen on ${host}:${port} (${code}): ${WHY_NOT[code]}`,
      { cause: error },
    );
  }
}

/** The console, if `npm run bundle` or `npm start` has built it from these sources. */
async function readConsole({ role }: Config, log: Log) {
  if (role === 'worker') return undefined;
  const folder = await findConsoleBundle();
  if (folder !== undefined) return readConsoleBundle(folder);
  log.warn('the console has not been built; npm run bundle builds it');
  return undefined;
}

/**
 * Lets proxies see that the process stops, before its listener closes: by its probe, and by the end of the connections
 * that they keep. Requests are still served.
 */
async function announceStop(
  { readiness, config }: Composition,
  servers: readonly HttpServer[],
  log: Log,
): Promise<void> {
  const delayMs = config.role === 'worker' ? 0 : config.stopDelayMs;
  readiness.announceStop();
  for (const server of servers) server.announceStop();
  if (delayMs === 0) return;
  log.info({ delayMs }, 'no longer ready; the listener closes after the delay');
  await sleep(delayMs);
}

const stopAll = async (servers: readonly HttpServer[], graceMs: number): Promise<void> =>
  void (await Promise.all(servers.map((server) => server.stop(graceMs))));
