import { compose, type Deps } from '../composition.ts';
import type { Config } from '../platform/config.ts';
import type { Log } from '../platform/log.ts';
import { APP_VERSION as version } from '../platform/version.ts';
import { createApp, createOperationsApp } from './app.ts';
import { serve } from './server.ts';

export type RunningProcess = { deps: Deps; port: number; stop(): Promise<void> };

/** Starts everything that one process does by its role, and says how to stop it. */
export async function startProcess(config: Config, log: Log): Promise<RunningProcess> {
  for (const name of config.unknownVariables)
    log.warn({ name }, 'this variable is not known and has no effect');
  const deps = compose(config, log);
  const stopping = new AbortController();
  const servers = [
    await serve(createApp(deps, { version, stopping: stopping.signal }), config),
    ...(config.metricsPort > 0
      ? [await serve(createOperationsApp(deps), { host: config.host, port: config.metricsPort })]
      : []),
  ];
  deps.start();
  const port = servers[0]?.port ?? config.port;
  log.info({ role: config.role, host: config.host, port, version }, 'listening');

  return {
    deps,
    port,
    async stop() {
      // Requests may still commit, and what they commit is dispatched before the rest stops.
      stopping.abort();
      await Promise.all([
        ...servers.map((server) => server.stop(config.stopGraceMs)),
        deps.stopWorkers(),
      ]);
      await deps.stop();
      log.info('stopped');
    },
  };
}
