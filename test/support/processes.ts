import { execFile, spawn, type ChildProcess } from 'node:child_process';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { COMPILE_CACHE } from './compileCache.ts';

export type TestProcess = {
  base: string;
  /** Ends it as a power cut would. */
  kill(): Promise<void>;
  /** Asks it to stop; resolves with its exit code. */
  terminate(): Promise<number | null>;
};

const ROOT = path.resolve(import.meta.dirname, '../..');
const running = new Set<ChildProcess>();

/** Starts the product's own entry in a process of its own, which can be killed while it still starts. */
export function launchProcess(
  env: Record<string, string>,
  /** Where the product is: another version, or this one. */
  root = ROOT,
): {
  kill(): Promise<void>;
  ready: Promise<TestProcess>;
  exited: Promise<number | null>;
  output(): string;
} {
  const child = spawn(process.execPath, ['--max-semi-space-size=16', 'processes/main.ts'], {
    cwd: root,
    env: {
      PATH: process.env.PATH,
      NODE_COMPILE_CACHE: COMPILE_CACHE,
      ...env,
      HOLDFAST_LOG_LEVEL: 'info',
    },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  running.add(child);
  const exited = new Promise<number | null>((resolve) => child.once('exit', resolve)).finally(() =>
    running.delete(child),
  );
  const signalAndWait = (signal: 'SIGKILL' | 'SIGTERM') => {
    child.kill(signal);
    return exited;
  };
  const kill = async () => void (await signalAndWait('SIGKILL'));
  let output = '';
  const listening = new Promise<number>((resolve, reject) => {
    const onOutput = (chunk: Buffer) => {
      output += chunk.toString();
      const found = /"port":(\d+).*"msg":"listening"/.exec(output);
      if (found) resolve(Number(found[1]));
    };
    child.stdout.on('data', onOutput);
    child.stderr.on('data', onOutput);
    void exited.then((code) => reject(new Error(`the process ended with ${code}:\n${output}`)));
  });
  return {
    kill,
    exited,
    output: () => output,
    ready: listening.then((port) => ({
      base: `http://127.0.0.1:${port}`,
      kill,
      terminate: () => signalAndWait('SIGTERM'),
    })),
  };
}

const OPEN_MS = 15_000;

/** Resolves when a process takes requests: it has read the schema of its database, or cannot reach it. */
async function untilOpen(base: string): Promise<void> {
  const deadline = Date.now() + OPEN_MS;
  // Former versions have no such probe.
  while (Date.now() < deadline && (await fetch(`${base}/routez`)).status === 503) await sleep(20);
}

/** The same, ready to answer. */
export async function startProcess(
  env: Record<string, string>,
  root?: string,
): Promise<TestProcess> {
  const started = await launchProcess(env, root).ready;
  await untilOpen(started.base);
  return started;
}

/** For afterAll: nothing that a failed test started stays. */
export async function killAll(): Promise<void> {
  const ends = [...running].map((child) => new Promise((resolve) => child.once('exit', resolve)));
  for (const child of running) child.kill('SIGKILL');
  await Promise.all(ends);
}

export type CommandResult = { status: number | null; stdout: string; stderr: string };

const runScript = (script: string, env: Record<string, string>, args: readonly string[]) =>
  new Promise<CommandResult>((resolve) => {
    const child = execFile(
      process.execPath,
      [script, ...args],
      { cwd: ROOT, env: { ...process.env, NODE_COMPILE_CACHE: COMPILE_CACHE, ...env } },
      (_error, stdout, stderr) => resolve({ status: child.exitCode, stdout, stderr }),
    );
  });

/** Runs a command of an operator, such as `admin`, in a process of its own. */
export const runCommand = (env: Record<string, string>, ...args: string[]) =>
  runScript('processes/cli/main.ts', env, args);

/** Runs a command that reads archives. */
export const runArchiveCommand = (env: Record<string, string>, ...args: string[]) =>
  runScript('processes/cli/archive.ts', env, args);
