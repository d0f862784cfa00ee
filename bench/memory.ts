import { readFile, readdir, readlink } from 'node:fs/promises';
import path from 'node:path';

/**
 * Proportional set size (proc(5), smaps_rollup) in MiB of a process and its descendants, by the name of
 * their executable.
 */
export async function familyMemory(root: number): Promise<Map<string, number>> {
  const pids = (await readdir('/proc')).filter((name) => /^\d+$/.test(name)).map(Number);
  const parents = new Map<number, number>();
  for (const pid of pids) {
    const stat = await readFile(`/proc/${pid}/stat`, 'utf8').catch(() => '');
    parents.set(pid, Number(stat.slice(stat.lastIndexOf(')') + 2).split(' ')[1]));
  }
  const belongs = (pid: number): boolean =>
    pid === root || (parents.has(pid) && belongs(parents.get(pid) ?? 0));
  const memory = new Map<string, number>();
  for (const pid of pids.filter(belongs)) {
    const rollup = await readFile(`/proc/${pid}/smaps_rollup`, 'utf8').catch(() => '');
    const mib = Number(/^Pss:\s+(\d+)/m.exec(rollup)?.[1] ?? 0) / 1_024;
    const name = path.basename(await readlink(`/proc/${pid}/exe`).catch(() => ''));
    memory.set(name, (memory.get(name) ?? 0) + mib);
  }
  return memory;
}

/** The same of all of them together. */
export const familyPss = async (root: number): Promise<number> =>
  Array.from((await familyMemory(root)).values()).reduce((sum, mib) => sum + mib, 0);
