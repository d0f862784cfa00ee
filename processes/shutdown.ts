import type { Log } from '../platform/log.ts';
import { onStopSignals } from './beginning.ts';

/** Warns of variables whose names nothing reads, such as misspelt ones. */
export function warnOfUnknown(
  { unknownVariables }: { unknownVariables: readonly string[] },
  log: Log,
): void {
  for (const name of unknownVariables) log.warn({ name }, 'unknown environment variable');
}

/**
 * Calls `stop` once, at SIGTERM, SIGINT or SIGHUP (the terminal was closed), and then ends the
 * process: with code 0, or 1 if `stop` fails. A second signal ends the process immediately (130).
 * Returns a function that does the same without a signal, with another code.
 */
export function shutdownOnSignals(log: Log, stop: () => Promise<void>): (code: number) => void {
  let stopping = false;
  const end = (code: number) => {
    if (stopping) return;
    stopping = true;
    stop().then(
      () => process.exit(code),
      (error: unknown) => {
        log.error({ err: error }, 'could not stop cleanly');
        process.exit(1);
      },
    );
  };
  onStopSignals((signal) => {
    if (stopping) process.exit(130);
    log.info({ signal }, 'stopping; send the signal again to stop immediately');
    end(0);
  });
  return end;
}
