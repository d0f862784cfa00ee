import { createLog } from '../platform/log.ts';
import { startTracing } from '../platform/tracing.ts';
import { APP_VERSION as version } from '../platform/version.ts';
import { readRunnerConfig } from '../runner/config.ts';
import { startRunner } from '../runner/process.ts';
import { createTemporalConnection } from '../temporal/connection.ts';
import { installRuntime } from '../temporal/runtime.ts';
import { shutdownOnSignals, warnOfUnknown } from './shutdown.ts';

/**
 * Starts a process with the role `runner`: it runs declared commands, and has neither a database nor master
 * keys. Errors: `ConfigError`; those of `startRunner`.
 */
export async function startRunnerProcess(env: NodeJS.ProcessEnv): Promise<void> {
  const config = readRunnerConfig(env);
  const log = createLog(config.logLevel, undefined, {
    role: 'runner',
    instance: config.instance,
  });
  warnOfUnknown(config, log);
  const { instance, tracing } = config;
  const stopTracing = await startTracing(
    tracing,
    { role: 'runner', instance, version },
    (message) => log.warn({ message }, 'traces'),
  );
  installRuntime(log);
  const temporal = createTemporalConnection(config.temporal);
  const runner = await startRunner({ config, temporal, log });
  log.info({ pools: config.pools, folders: config.typeFolders }, 'the runner has started');
  shutdownOnSignals(log, async () => {
    await runner.stop();
    await temporal.close();
    await stopTracing();
    log.info('stopped');
  });
}
