import type { Log } from '../platform/log.ts';

/**
 * Calls `stop` once, at SIGTERM, SIGINT or SIGHUP (the terminal was closed), and then ends the
 * process: with code 0, or 1 if `stop` fails. A second signal ends the process immediately (130).
 */
export function shutdownOnSignals(log: Log, stop: () => Promise<void>): void {
  let stopping = false;
  const onSignal = (signal: NodeJS.Signals) => {
    if (stopping) process.exit(130);
    stopping = true;
    log.info({ signal }, 'stopping; send the signal again to stop immediately');
    stop().then(
      () => process.exit(0),
      (error: unknown) => {
        log.error({ err: error }, 'could not stop cleanly');
        process.exit(1);
      },
    );
  };
  for (const signal of ['SIGTERM', 'SIGINT', 'SIGHUP'] as const) process.on(signal, onSignal);
}
