import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { closeSync } from 'node:fs';
import net from 'node:net';
import path from 'node:path';
import { createInterface } from 'node:readline';
import type { Duplex } from 'node:stream';
import { errorMessage } from '../../domain/shared/errorMessage.ts';
import type { Lease } from './attempt.ts';
import type { Pipe } from './pipes.ts';
import { killLeft, signalCommand, signalDaemons } from './processTree.ts';

const SHIM = path.join(import.meta.dirname, 'shim.pl');

/** How the process of the command has ended. */
export type CommandExit =
  | { kind: 'exited'; code: number }
  | { kind: 'killed'; signal: number }
  /** The lease of the attempt has ended, while this process did not renew it. */
  | { kind: 'lost' }
  /** It was not started, or the shim was killed; `reason` is a phrase. */
  | { kind: 'failed'; reason: string };

export type CommandSpec = {
  argv: readonly string[];
  /** The arguments of the wrapper and of what it wraps; empty without a wrapper. */
  wrapped: readonly string[];
  /** Absolute path of the folder in which the command starts. */
  cwd: string;
  /** The complete environment of the command. */
  env: Readonly<Record<string, string>>;
  /** A variable of `env` whose value is unique to this run: it finds processes that nothing else finds. */
  mark: string;
  lease: Lease | undefined;
};

/** A process that waits for its command. */
export type Shim = {
  /** Rejects if it cannot be started. */
  started: Promise<void>;
  /** Starts the command. Called once at most. */
  run(spec: CommandSpec): RunningCommand;
  /** Ends a shim that has not got a command. */
  discard(): Promise<void>;
};

export type RunningCommand = {
  stdout: net.Socket;
  stderr: net.Socket;
  /** Resolves when the process of the command has ended. Others may still run. */
  exit: Promise<CommandExit>;
  /** Resolves when no process of the run is left, or nothing is known of them any more. */
  empty: Promise<void>;
  /** Asks the command to stop: see `signalCommand`. False if it has not started yet. */
  signal(name: NodeJS.Signals): Promise<boolean>;
  /** Asks what the command has left to stop: processes that have left its group. */
  signalDaemons(name: NodeJS.Signals): Promise<void>;
  /** Kills every process of the run. Resolves with the ids of those that cannot be killed. */
  killAll(): Promise<number[]>;
};

/** A shim that does not end after this time is killed, too. By itself it stops killing after 10 s. */
const SHIM_LIMIT_MS = 15_000;

type Pipes = readonly [stdout: Pipe, stderr: Pipe];

/** Error: the process cannot be made; the pipes are closed. */
function spawnShim(pipes: Pipes): ChildProcess {
  const writeFds = pipes.map(({ writeFd }) => writeFd);
  try {
    const shim = spawn('perl', [SHIM], {
      detached: true,
      cwd: '/',
      // The command gets its own environment from the shim.
      env: { PATH: process.env.PATH, LC_ALL: 'C' },
      stdio: ['ignore', ...writeFds, 'pipe'],
    });
    // Who waits for its start gets the error.
    shim.on('error', () => undefined);
    // Node makes no streams then, and emits the error later.
    if ((shim.stdio as unknown) === undefined) throw new Error('Too many files are open');
    return shim;
  } catch (error) {
    for (const { readFd } of pipes) closeSync(readFd);
    throw error;
  } finally {
    for (const fd of writeFds) closeSync(fd);
  }
}

/**
 * Starts a shim with the pipes of its command, which are its own from then on: a session of its own, in which the shim
 * kills all processes when this process closes the connection or dies. Error: as `spawnShim`.
 */
export function startShim(pipes: Pipes): Shim {
  const shim = spawnShim(pipes);
  const ended = once(shim, 'exit').then(() => undefined, errorMessage);
  const started = once(shim, 'spawn').then(() => undefined);
  // A command that is run nevertheless fails with the reason.
  started.catch(() => undefined);
  const connection = shim.stdio[3] as Duplex;
  // The shim may have ended; `ended` says so.
  connection.on('error', () => undefined);
  let hasCommand = false;
  return {
    started,
    run(spec) {
      hasCommand = true;
      const [stdout, stderr] = pipes.map(({ readFd }) => readPipe(readFd)) as [
        net.Socket,
        net.Socket,
      ];
      const reports = readReports(connection, ended);
      connection.write(frame(spec));
      if (spec.lease) guardLease(connection, spec.lease);
      return {
        stdout,
        stderr,
        exit: reports.exit,
        empty: reports.empty,
        async signal(name) {
          const { group, isOver } = reports.state;
          if (group !== undefined && !isOver) await signalCommand(group, name, spec.wrapped);
          return group !== undefined;
        },
        signalDaemons: (name) => signalDaemonsOf(shim, reports.state.group, name),
        async killAll() {
          await endShim(shim, connection, ended);
          const { group, adopts, left } = reports.state;
          const isClean = adopts && shim.signalCode === null && shim.exitCode === 0;
          if (isClean || shim.pid === undefined) return left;
          return killLeft({ session: shim.pid, group, mark: spec.mark });
        },
      };
    },
    async discard() {
      if (hasCommand) return;
      hasCommand = true;
      await endShim(shim, connection, ended);
      for (const { readFd } of pipes) closeSync(readFd);
    },
  };
}

/**
 * Lets the shim end the command with its lease: by its own clock, since this process may be paused then, or its event loop
 * blocked.
 */
function guardLease(connection: Duplex, lease: Lease): void {
  const renew = () => {
    const leftMs = Math.max(0, Math.round(lease.leftMs()));
    if (connection.writable) connection.write(`lease ${leftMs}\n`);
  };
  lease.onRenewed(renew);
  renew();
}

async function signalDaemonsOf(
  shim: ChildProcess,
  group: number | undefined,
  name: NodeJS.Signals,
): Promise<void> {
  // The id of one that has ended may be that of another process.
  const hasEnded = shim.exitCode !== null || shim.signalCode !== null;
  if (shim.pid !== undefined && !hasEnded) await signalDaemons({ shim: shim.pid, group }, name);
}

/** Ends a shim, which kills the processes of its command first. */
async function endShim(
  shim: ChildProcess,
  connection: Duplex,
  ended: Promise<unknown>,
): Promise<void> {
  connection.end();
  const timer = setTimeout(() => shim.kill('SIGKILL'), SHIM_LIMIT_MS);
  await ended;
  clearTimeout(timer);
}

function readPipe(fd: number): net.Socket {
  const socket = new net.Socket({ fd, readable: true, writable: false });
  socket.on('error', () => undefined);
  return socket;
}

/** What the shim expects: see `receive` there. */
function frame({ argv, cwd, env }: CommandSpec): string {
  const variables = Object.entries(env).map(([name, value]) => `${name}=${value}`);
  const body = [cwd, String(argv.length), ...argv, ...variables, ''].join('\0');
  return `${Buffer.byteLength(body)}\n${body}`;
}

type ShimState = {
  /** The process group of the command. */
  group: number | undefined;
  /** True if orphans of the command become children of the shim. */
  adopts: boolean;
  isOver: boolean;
  /** Ids of processes that the shim could not kill. */
  left: number[];
};

/** Reads what the shim reports. */
function readReports(connection: Duplex, ended: Promise<unknown>) {
  const state: ShimState = { group: undefined, adopts: true, isOver: false, left: [] };
  const exit = Promise.withResolvers<CommandExit>();
  const empty = Promise.withResolvers<undefined>();
  const over = (how: CommandExit) => {
    state.isOver = true;
    exit.resolve(how);
  };
  const onReport = (report: string) => {
    const [, word = '', rest = ''] = /^(\w+) ?(.*)$/.exec(report) ?? [];
    const numbers = rest.split(' ').map(Number);
    const [first = 0, second = 0] = numbers;
    if (word === 'started') Object.assign(state, { group: first, adopts: second === 1 });
    else if (word === 'exit')
      over(second === 0 ? { kind: 'exited', code: first } : { kind: 'killed', signal: second });
    else if (word === 'lost') over({ kind: 'lost' });
    else if (word === 'empty') empty.resolve(undefined);
    else if (word === 'failed') over({ kind: 'failed', reason: rest });
    else if (word === 'left') state.left = numbers.filter((id) => id > 0);
  };
  // It emits the errors of the connection once more.
  createInterface({ input: connection })
    .on('line', onReport)
    .on('error', () => undefined);
  void ended.then((error) =>
    // Its last reports may still be on their way.
    setImmediate(() => {
      over({ kind: 'failed', reason: typeof error === 'string' ? error : 'its shim was killed' });
      empty.resolve(undefined);
    }),
  );
  return { state, exit: exit.promise, empty: empty.promise };
}
