import './nodeVersion.js';
import './beginning.ts';
import { ConfigError, readConfig } from '../platform/config.ts';
import { createLog } from '../platform/log.ts';
import { startTracing } from '../platform/tracing.ts';
import { APP_VERSION as version } from '../platform/version.ts';
import { shutdownOnSignals } from './shutdown.ts';

const PURPOSE = 'Starts a process of Holdfast; HOLDFAST_ROLE says which one.';

/** Starts a process with the role `api`, `worker` or `all`. */
async function startServer(): Promise<void> {
  const [{ collectSdkMetrics, installRuntime }, { startProcess }] = await Promise.all([
    import('./composition/index.ts'),
    import('./start.ts'),
  ]);
  const config = readConfig(process.env);
  const log = createLog(config.logLevel, undefined, config);
  const stopTracing = await startTracing(config.tracing, { ...config, version }, (message) =>
    log.warn({ message }, 'traces'),
  );
  installRuntime(log, { metrics: collectSdkMetrics() });
  const running = await startProcess(config, log);
  const stop = shutdownOnSignals(log, async () => {
    await running.stop();
    await stopTracing();
  });
  void running.refused.then(({ message }) => {
    log.fatal(message);
    stop(1);
  });
}

async function start(): Promise<void> {
  const args = process.argv.slice(2);
  if (args.length > 0) {
    const { answerOptions } = await import('./options.ts');
    // Words are for those who list processes: `npm start` names the folder of its runner.
    process.exitCode = answerOptions(args, PURPOSE, Infinity);
    if (process.exitCode !== undefined) return;
  }
  // A runner loads nothing of the server: it has no database.
  if (process.env.HOLDFAST_ROLE?.trim() === 'runner')
    return (await import('./runner.ts')).startRunnerProcess(process.env);
  await startServer();
}

try {
  await start();
} catch (error) {
  const details = error instanceof Error ? (error.stack ?? error.message) : String(error);
  process.stderr.write(`${error instanceof ConfigError ? error.message : details}\n`);
  process.exit(1);
}
