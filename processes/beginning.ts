/**
 * What every process does before it loads anything else.
 *
 * An empty variable counts as not set, also where it is not read with `createEnvReader`: compose files and
 * unit files pass on variables that nobody has set as empty ones.
 *
 * Signals end a process until it can stop in order (`onStopSignals`), with its `exit` listeners, which stop the
 * servers that it has started. The first process of a container would ignore them otherwise, and be killed when
 * its time to stop is over.
 */
const OWN = /^(?:HOLDFAST_|TEMPORAL_|DATABASE_URL$)/;

for (const [name, value] of Object.entries(process.env))
  if (OWN.test(name) && value?.trim() === '') Reflect.deleteProperty(process.env, name);

/** Exit codes as shells report signals. */
const EXIT_CODES = { SIGHUP: 129, SIGINT: 130, SIGTERM: 143 };
const SIGNALS = ['SIGTERM', 'SIGINT', 'SIGHUP'] as const;

const endOnSignal = (signal: NodeJS.Signals) =>
  process.exit(EXIT_CODES[signal as keyof typeof EXIT_CODES]);

for (const signal of SIGNALS) process.on(signal, endOnSignal);

/** Calls `listener` instead at each signal that asks this process to stop; SIGHUP: its terminal was closed. */
export function onStopSignals(listener: (signal: NodeJS.Signals) => void): void {
  for (const signal of SIGNALS) {
    process.off(signal, endOnSignal);
    process.on(signal, listener);
  }
}
