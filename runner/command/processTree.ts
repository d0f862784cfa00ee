import { readdir, readFile } from 'node:fs/promises';
import { setTimeout as sleep } from 'node:timers/promises';

/** Sends a signal to a process group. A group that does not exist any more is no error. */
export function signalGroup(group: number, signal: NodeJS.Signals): void {
  try {
    process.kill(-group, signal);
  } catch {
    // ESRCH: it has ended. EPERM: all of it belongs to another user.
  }
}

function killProcess(id: number): void {
  try {
    process.kill(id, 'SIGKILL');
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
  const names = await readdir('/proc').catch(() => []);
  const ids = names.filter((name) => /^\d+$/.test(name)).map(Number);
  const states = (await Promise.all(ids.map(readState))).filter((state) => state !== undefined);
  const found = new Set<number>();
  for (const { id, ...state } of states) {
    if (id === process.pid) continue;
    const isOfRun = state.session === session || state.group === group;
    if (isOfRun || (await hasMark(id, mark))) found.add(id);
  }
  for (let grows = true; grows;) {
    const children = states.filter(({ id, parent }) => found.has(parent) && !found.has(id));
    for (const { id } of children) found.add(id);
    grows = children.length > 0;
  }
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
    found.forEach(killProcess);
    await sleep(PAUSE_MS);
  }
}
