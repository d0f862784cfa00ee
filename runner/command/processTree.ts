import { readdir, readFile } from 'node:fs/promises';
import os from 'node:os';
import { setTimeout as sleep } from 'node:timers/promises';

/** Sends a signal to a process group. A group that no longer exists is no error. */
function signalGroup(group: number, signal: NodeJS.Signals): void {
  try {
    process.kill(-group, signal);
  } catch {
    // ESRCH: it has ended. EPERM: all of it belongs to another user.
  }
}

function signalProcess(id: number, signal: NodeJS.Signals): void {
  try {
    process.kill(id, signal);
  } catch {
    // As above.
  }
}

/** What identifies the processes of a run whose shim does not do it. */
export type RunTraces = {
  /** The session of the shim. */
  session: number;
  /** The process group of the command, if it was started. */
  group: number | undefined;
  /** The mark in the environment of the command. */
  mark: string;
};

type ProcessState = { id: number; parent: number; group: number; session: number };

/** Fields of `/proc/<id>/stat` (proc(5)); undefined for a process that has ended. */
async function readState(id: number): Promise<ProcessState | undefined> {
  const text = await readFile(`/proc/${id}/stat`, 'latin1').catch(() => '');
  // The name, in parentheses, can contain anything.
  const [, state, parent, group, session] = /^.*\)\s(\S)\s(\d+)\s(\d+)\s(\d+)/s.exec(text) ?? [];
  if (state === undefined || state === 'Z' || state === 'X') return undefined;
  return { id, parent: Number(parent), group: Number(group), session: Number(session) };
}

/** The processes that run. Empty on systems without `/proc`. */
async function readStates(): Promise<ProcessState[]> {
  const names = await readdir('/proc').catch(() => []);
  const ids = names.filter((name) => /^\d+$/.test(name)).map(Number);
  return (await Promise.all(ids.map(readState))).filter((state) => state !== undefined);
}

/** Adds the descendants of processes to them. */
function addDescendants(found: Set<number>, states: readonly ProcessState[]): void {
  for (let grows = true; grows;) {
    const children = states.filter(({ id, parent }) => found.has(parent) && !found.has(id));
    for (const { id } of children) found.add(id);
    grows = children.length > 0;
  }
}

/** True if a process has a handler for a signal (proc(5), `SigCgt` of `/proc/<id>/status`). */
async function handles(id: number, signal: NodeJS.Signals): Promise<boolean> {
  const text = await readFile(`/proc/${id}/status`, 'latin1').catch(() => '');
  const [, mask = '0'] = /^SigCgt:\s*([0-9a-f]+)$/m.exec(text) ?? [];
  return ((BigInt(`0x${mask}`) >> BigInt(os.constants.signals[signal] - 1)) & 1n) === 1n;
}

/**
 * The processes that a wrapper has started and that are to stop in its stead: a sandbox that a signal ends takes with it
 * what runs inside, before that can end in order. Empty if `id` is no wrapper any more, as after `env` has executed its
 * command, if it handles the signal itself, or has no child. `wrapped` are the arguments of the wrapper.
 */
async function findWrapped(
  id: number,
  signal: NodeJS.Signals,
  wrapped: readonly string[],
): Promise<Set<number>> {
  if (wrapped.length === 0) return new Set();
  const line = await readFile(`/proc/${id}/cmdline`, 'utf8').catch(() => '');
  // An interpreter may be before them.
  const isWrapper = line.endsWith(wrapped.map((each) => `${each}\0`).join(''));
  if (!isWrapper || (await handles(id, signal))) return new Set();
  const found = new Set([id]);
  addDescendants(found, await readStates());
  found.delete(id);
  return found;
}

/**
 * Asks a command to stop: its process group gets the signal, or without its wrapper everything that the wrapper
 * has started. A command that has ended is no error.
 */
export async function signalCommand(
  group: number,
  signal: NodeJS.Signals,
  wrapped: readonly string[],
): Promise<void> {
  const inside = await findWrapped(group, signal, wrapped);
  if (inside.size === 0) signalGroup(group, signal);
  for (const id of inside) signalProcess(id, signal);
}

/** Sends a signal to the descendants of a shim that are not in the group of its command. */
export async function signalDaemons(
  { shim, group }: { shim: number; group: number | undefined },
  signal: NodeJS.Signals,
): Promise<void> {
  const states = await readStates();
  const found = new Set([shim]);
  addDescendants(found, states);
  for (const { id, ...state } of states)
    if (id !== shim && found.has(id) && state.group !== group) signalProcess(id, signal);
}

const hasMark = (id: number, mark: string): Promise<boolean> =>
  readFile(`/proc/${id}/environ`, 'latin1').then(
    (text) => text.includes(mark),
    () => false,
  );

/**
 * The processes with the traces of a run: of its session or group, with its mark in their environment, and
 * the descendants of all these. Empty on systems without `/proc`.
 */
async function findProcesses({ session, group, mark }: RunTraces): Promise<number[]> {
  const states = await readStates();
  const found = new Set<number>();
  for (const { id, ...state } of states) {
    if (id === process.pid) continue;
    const isOfRun = state.session === session || state.group === group;
    if (isOfRun || (await hasMark(id, mark))) found.add(id);
  }
  addDescendants(found, states);
  return [...found];
}

const LIMIT_MS = 10_000;
const PAUSE_MS = 10;

/**
 * Kills the processes with the traces of a run until there are none. Returns the ids of those that still
 * run after 10 s: processes of other users, or in an uninterruptible sleep.
 */
export async function killLeft(traces: RunTraces): Promise<number[]> {
  const deadline = performance.now() + LIMIT_MS;
  for (;;) {
    if (traces.group !== undefined) signalGroup(traces.group, 'SIGKILL');
    const found = await findProcesses(traces);
    if (found.length === 0 || performance.now() > deadline) return found;
    for (const id of found) signalProcess(id, 'SIGKILL');
    await sleep(PAUSE_MS);
  }
}
