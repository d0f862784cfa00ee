import { installRuntime } from './composition/index.ts';
import { ConfigError, readConfig } from '../platform/config.ts';
import { createLog } from '../platform/log.ts';
import { startProcess } from './start.ts';
import { shutdownOnSignals } from './shutdown.ts';

/** Starts a process with the role `api`, `worker` or `all`. */
try {
  const config = readConfig(process.env);
  const log = createLog(config.logLevel);
  installRuntime(log);
  const running = await startProcess(config, log);
  shutdownOnSignals(log, () => running.stop());
} catch (error) {
  const details = error instanceof Error ? (error.stack ?? error.message) : String(error);
  process.stderr.write(`${error instanceof ConfigError ? error.message : details}\n`);
  process.exit(1);
}
