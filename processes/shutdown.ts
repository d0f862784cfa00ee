import type { Log } from '../platform/log.ts';

/** Stops once, cleanly, at SIGTERM, SIGINT or SIGHUP; a second signal ends the process at once. */
export function stopOnSignals(log: Log, stop: () => Promise<void>): void {
  let stopping = false;
  const handle = (signal: NodeJS.Signals) => {
    if (stopping) process.exit(130);
    stopping = true;
    log.info({ signal }, 'stopping; once more to stop at once');
    stop().then(
      () => process.exit(0),
      (error: unknown) => {
        log.error({ err: error }, 'could not stop cleanly');
        process.exit(1);
      },
    );
  };
  process.on('SIGTERM', handle);
  process.on('SIGINT', handle);
  // The terminal was closed.
  process.on('SIGHUP', handle);
}
