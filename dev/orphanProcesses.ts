import { execFile } from 'node:child_process';
import { readFile, rm, writeFile } from 'node:fs/promises';
import { promisify } from 'node:util';
import { FolderInUse } from './lock.ts';

const run = promisify(execFile);

export type ServerProcess = { name: string; pid: number; signal: NodeJS.Signals };

type ServerRecord = { owner: number; servers: readonly ServerProcess[] };

const STOP_LIMIT_MS = 20_000;

/**
 * Records the servers of a data folder, so that the next start can stop them if this process is
 * killed.
 */
export const recordServers = (file: string, servers: readonly ServerProcess[]): Promise<void> =>
  writeFile(file, JSON.stringify({ owner: process.pid, servers } satisfies ServerRecord), {
    mode: 0o600,
  });

export const forgetServers = (file: string): Promise<void> => rm(file, { force: true });

const isAlive = (pid: number): boolean => {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
};

/** The command line of a process, or '' if it cannot be read. */
const commandLineOf = (pid: number): Promise<string> =>
  readFile(`/proc/${pid}/cmdline`, 'utf8').then(
    (text) => text.replaceAll('\0', ' '),
    () =>
      run('ps', ['-o', 'args=', '-p', String(pid)]).then(
        ({ stdout }) => stdout,
        () => '',
      ),
  );

/**
 * Stops the servers that a killed start has left running. A process is stopped only if its command
 * line contains `folder`, since its id may have been reused. Returns the names of the stopped
 * servers. Error: `FolderInUse` if the process that started them is alive.
 */
export async function stopOrphans(file: string, folder: string): Promise<string[]> {
  const noRecord: ServerRecord = { owner: 0, servers: [] };
  const { owner, servers } = await readFile(file, 'utf8').then(
    (text) => JSON.parse(text) as ServerRecord,
    () => noRecord,
  );
  // Two containers that share a folder do not see each other's lock.
  if (
    owner !== 0 &&
    owner !== process.pid &&
    isAlive(owner) &&
    (await commandLineOf(owner)).includes('processes/dev.ts')
  ) {
    throw new FolderInUse(`Process ${owner} already runs Holdfast on ${folder}.`);
  }
  const stopped: string[] = [];
  for (const { name, pid, signal } of servers) {
    if (!isAlive(pid) || !(await commandLineOf(pid)).includes(folder)) continue;
    process.kill(pid, signal);
    const deadline = Date.now() + STOP_LIMIT_MS;
    while (isAlive(pid) && Date.now() < deadline)
      await new Promise((resolve) => setTimeout(resolve, 50));
    if (isAlive(pid)) process.kill(pid, 'SIGKILL');
    stopped.push(name);
  }
  await forgetServers(file);
  return stopped;
}
