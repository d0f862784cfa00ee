import { spawn, type ChildProcess, type SpawnOptions } from 'node:child_process';
import { once } from 'node:events';
import { createWriteStream } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';

export type Child = {
  pid: number;
  /** Resolves when the process has ended, with a phrase such as "ended with code 1". */
  ended: Promise<string>;
  /**
   * Sends the stop signal, or another one, and waits for the end of the process, which is killed after `graceMs`.
   */
  stop(graceMs: number, signal?: NodeJS.Signals): Promise<void>;
};

type ChildOptions = {
  /** File to which standard output and standard error are appended. */
  logFile: string;
  /** Signal that makes this server shut down in order. */
  stopSignal: NodeJS.Signals;
  /** Called with the process id before anything else, so that an orphan can be found later. */
  onSpawn(pid: number): Promise<void>;
  options?: SpawnOptions;
};

const FAILED_START_GRACE_MS = 5_000;

/**
 * Starts a server in a process group of its own: Ctrl-C in the terminal reaches only this process,
 * which then stops the servers in order. When this process exits without stopping it, the server
 * gets its stop signal. Error: the program cannot be started.
 */
export async function startChild(
  command: string,
  args: readonly string[],
  { logFile, stopSignal, onSpawn, options = {} }: ChildOptions,
): Promise<Child> {
  const output = createWriteStream(logFile, { flags: 'a', mode: 0o600 });
  await once(output, 'open');
  output.on('error', () => undefined);
  const server = spawn(command, args, {
    ...options,
    detached: true,
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  server.stdout?.pipe(output, { end: false });
  server.stderr?.pipe(output, { end: false });
  const ended = endOf(server);
  stopAtExit(server, stopSignal, ended);
  await once(server, 'spawn');
  const child: Child = {
    pid: server.pid ?? 0,
    ended,
    async stop(graceMs, signal = stopSignal) {
      server.kill(signal);
      const timer = setTimeout(() => server.kill('SIGKILL'), graceMs);
      await ended;
      clearTimeout(timer);
      output.end();
    },
  };
  try {
    await onSpawn(child.pid);
  } catch (error) {
    await child.stop(FAILED_START_GRACE_MS);
    throw error;
  }
  return child;
}

const endOf = (child: ChildProcess) =>
  new Promise<string>((resolve) => {
    child.once('exit', (code, signal) =>
      resolve(signal ? `ended by ${signal}` : `ended with code ${code}`),
    );
    child.once('error', (error) => resolve(error.message));
  });

/** The last resort: covers a second Ctrl-C and an uncaught error, but not SIGKILL. */
function stopAtExit(child: ChildProcess, signal: NodeJS.Signals, ended: Promise<string>): void {
  const stop = () => void child.kill(signal);
  process.once('exit', stop);
  void ended.then(() => process.off('exit', stop));
}

type WaitOptions = {
  /** Name of the server for messages. */
  name: string;
  logFile: string;
  limitMs: number;
  /** Resolves when the server does its work, and rejects until then. */
  check(): Promise<unknown>;
  signal?: AbortSignal | undefined;
};

/**
 * Waits until `check` succeeds. If it does not, the server is stopped. Errors: the server ended,
 * or does not answer after `limitMs`; the reason of `signal`.
 */
export async function waitUntilUp(
  child: Child,
  { name, logFile, limitMs, check, signal }: WaitOptions,
): Promise<void> {
  let exitReason: string | undefined;
  void child.ended.then((how) => (exitReason = how));
  const deadline = Date.now() + limitMs;
  const isUp = () =>
    check().then(
      () => true,
      () => false,
    );
  try {
    while (!(await isUp())) {
      signal?.throwIfAborted();
      if (exitReason !== undefined) throw new Error(`${name} ${exitReason}; see ${logFile}`);
      if (Date.now() > deadline) {
        throw new Error(`${name} does not answer after ${limitMs / 1_000} s; see ${logFile}`);
      }
      await sleep(50);
    }
    signal?.throwIfAborted();
  } catch (error) {
    await child.stop(FAILED_START_GRACE_MS);
    throw error;
  }
}
