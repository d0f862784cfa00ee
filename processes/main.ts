import { installRuntime } from '../composition.ts';
import { ConfigError, readConfig } from '../platform/config.ts';
import { createLog } from '../platform/log.ts';
import { startProcess } from '../api/process.ts';
import { stopOnSignals } from './shutdown.ts';

/** The entry of every process of an installation: roles `all`, `api` and `worker`. */
try {
  const config = readConfig(process.env);
  const log = createLog(config.logLevel);
  installRuntime(log);
  const running = await startProcess(config, log);
  stopOnSignals(log, () => running.stop());
} catch (error) {
  process.stderr.write(
    `${error instanceof ConfigError ? error.message : String(error instanceof Error ? error.stack : error)}\n`,
  );
  process.exit(1);
}
