import { spawn, type ChildProcess, type SpawnOptions } from 'node:child_process';
import { once } from 'node:events';
import { createWriteStream } from 'node:fs';

export type Child = {
  pid: number;
  /** Resolves when the process has ended, with a few words about how. */
  ended: Promise<string>;
  /** Asks it to stop with `signal` and waits; after `graceMs` it is killed. */
  stop(signal: NodeJS.Signals, graceMs: number): Promise<void>;
};

type StartOptions = {
  logFile: string;
  /** Told the process id before anything else, so that whoever is killed now can be cleaned up after. */
  onSpawn(pid: number): Promise<void>;
  options?: SpawnOptions;
};

/**
 * Starts a server in a process group of its own, so that Ctrl-C in the terminal reaches only us and we stop the
 * parts in order. What it prints goes to `logFile`.
 */
export async function startChild(
  command: string,
  args: readonly string[],
  { logFile, onSpawn, options = {} }: StartOptions,
): Promise<Child> {
  const output = createWriteStream(logFile, { flags: 'a' });
  await once(output, 'open');
  output.on('error', () => undefined);
  const child: ChildProcess = spawn(command, args, {
    ...options,
    detached: true,
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  child.stdout?.pipe(output, { end: false });
  child.stderr?.pipe(output, { end: false });
  const ended = new Promise<string>((resolve) => {
    child.once('exit', (code, signal) =>
      resolve(signal ? `ended by ${signal}` : `ended with code ${code}`),
    );
    child.once('error', (error) => resolve(error.message));
  });
  await new Promise<void>((resolve, reject) => {
    child.once('spawn', resolve);
    child.once('error', reject);
  });
  await onSpawn(child.pid ?? 0);
  return {
    pid: child.pid ?? 0,
    ended,
    async stop(signal, graceMs) {
      child.kill(signal);
      const timer = setTimeout(() => child.kill('SIGKILL'), graceMs);
      await ended;
      clearTimeout(timer);
      output.end();
    },
  };
}

/**
 * Waits until `check` succeeds. Errors: `what` did not come up in `limitMs`, or ended, with the place of its log; it is
 * ended then.
 */
export async function waitUntilUp(
  what: string,
  child: Child,
  logFile: string,
  limitMs: number,
  check: () => Promise<unknown>,
): Promise<void> {
  let gone: string | undefined;
  void child.ended.then((how) => (gone = how));
  const until = Date.now() + limitMs;
  for (;;) {
    if (
      await check().then(
        () => true,
        () => false,
      )
    )
      return;
    if (gone !== undefined) throw new Error(`${what} ${gone}; its log is ${logFile}`);
    if (Date.now() > until) {
      await child.stop('SIGTERM', 5_000);
      throw new Error(`${what} did not come up within ${limitMs / 1_000} s; its log is ${logFile}`);
    }
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
}
