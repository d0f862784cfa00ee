import { readFile, readdir, readlink } from 'node:fs/promises';
import path from 'node:path';

/** Milliseconds of a unit of time in `/proc/<pid>/stat` (`_SC_CLK_TCK`, 100 everywhere). */
const TICK_MS = 10;

/** A process and its descendants, with the processor time that each has used, in milliseconds. */
async function familyOf(root: number): Promise<{ pid: number; cpuMs: number }[]> {
  const pids = (await readdir('/proc')).filter((name) => /^\d+$/.test(name)).map(Number);
  const processes = new Map<number, { parent: number; cpuMs: number }>();
  for (const pid of pids) {
    const stat = await readFile(`/proc/${pid}/stat`, 'utf8').catch(() => '');
    const fields = stat
      .slice(stat.lastIndexOf(')') + 2)
      .split(' ')
      .map(Number);
    const [, parent = 0] = fields;
    const ticks = (fields[11] ?? 0) + (fields[12] ?? 0);
    processes.set(pid, { parent, cpuMs: ticks * TICK_MS });
  }
  const belongs = (pid: number): boolean =>
    pid === root || (processes.has(pid) && belongs(processes.get(pid)?.parent ?? 0));
  return pids
    .filter(belongs)
    .map((pid) => ({ pid, cpuMs: processes.get(pid)?.cpuMs ?? Number.NaN }));
}

/** Processor time, in milliseconds, that the living descendants of a process have used, without its own. */
export const descendantsCpuMs = async (root: number): Promise<number> =>
  (await familyOf(root)).reduce((sum, { pid, cpuMs }) => (pid === root ? sum : sum + cpuMs), 0);

/**
 * Proportional set size (proc(5), smaps_rollup) in MiB of a process and its descendants, by the name of
 * their executable.
 */
export async function familyMemory(root: number): Promise<Map<string, number>> {
  const memory = new Map<string, number>();
  for (const { pid } of await familyOf(root)) {
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
