import { readdir, readFile } from 'node:fs/promises';

/** The ids of processes whose environment or command line has a text. Zombies have neither. */
export async function processesWith(text: string): Promise<number[]> {
  const ids = (await readdir('/proc')).filter((name) => /^\d+$/.test(name)).map(Number);
  const found = await Promise.all(
    ids.map(async (id) => {
      if (id === process.pid) return [];
      const read = (name: string) => readFile(`/proc/${id}/${name}`, 'latin1').catch(() => '');
      const texts = await Promise.all([read('environ'), read('cmdline')]);
      return texts.some((each) => each.includes(text)) ? [id] : [];
    }),
  );
  return found.flat();
}

/** The shims that run now, of commands with the mark: they lead the sessions of commands. */
export async function shims(mark: string): Promise<number[]> {
  const commands = await processesWith(mark);
  const leaders = await Promise.all(
    commands.map(async (id) => {
      const stat = await readFile(`/proc/${id}/stat`, 'latin1').catch(() => '');
      return Number(stat.slice(stat.lastIndexOf(')')).split(' ')[4] ?? 0);
    }),
  );
  const shimOf = async (id: number) =>
    (await readFile(`/proc/${id}/cmdline`, 'latin1').catch(() => '')).includes('shim.pl');
  const unique = [...new Set(leaders)].filter((id) => id > 0);
  const checks = await Promise.all(unique.map(shimOf));
  return unique.filter((_, i) => checks[i]);
}
