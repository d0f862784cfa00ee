import { execFile } from 'node:child_process';
import { readFile, rm, writeFile } from 'node:fs/promises';
import { promisify } from 'node:util';
import { FolderInUse } from './lock.ts';

const run = promisify(execFile);

export type Part = { name: string; pid: number; signal: NodeJS.Signals };

type Notes = { owner: number; parts: readonly Part[] };

const STOP_LIMIT_MS = 20_000;

/** Notes which servers belong to the folder, so that the next start can end them if we are killed. */
export const noteParts = (file: string, parts: readonly Part[]): Promise<void> =>
  writeFile(file, JSON.stringify({ owner: process.pid, parts } satisfies Notes));

export const forgetParts = (file: string): Promise<void> => rm(file, { force: true });

const isAlive = (pid: number): boolean => {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
};

/** The command line of a process, or '' when it cannot be told. */
const commandOf = (pid: number): Promise<string> =>
  readFile(`/proc/${pid}/cmdline`, 'utf8').then(
    (text) => text.replaceAll('\0', ' '),
    () =>
      run('ps', ['-o', 'args=', '-p', String(pid)]).then(
        ({ stdout }) => stdout,
        () => '',
      ),
  );

/**
 * Ends servers that a killed start has left on `folder`. A process is touched only when its command line names
 * the folder: its number may belong to somebody else by now. Returns the names of what was ended. Error:
 * `FolderInUse` while the process that started them lives.
 */
export async function endLeftovers(file: string, folder: string): Promise<string[]> {
  const nothing: Notes = { owner: 0, parts: [] };
  const { owner, parts } = await readFile(file, 'utf8').then(
    (text) => JSON.parse(text) as Notes,
    () => nothing,
  );
  // The lock says whether somebody is here; this is for two who do not see each other's lock.
  if (
    owner !== 0 &&
    owner !== process.pid &&
    isAlive(owner) &&
    (await commandOf(owner)).includes('dev/main.ts')
  ) {
    throw new FolderInUse(`Process ${owner} already runs Holdfast on ${folder}.`);
  }
  const ended: string[] = [];
  for (const { name, pid, signal } of parts) {
    if (!isAlive(pid) || !(await commandOf(pid)).includes(folder)) continue;
    process.kill(pid, signal);
    const until = Date.now() + STOP_LIMIT_MS;
    while (isAlive(pid) && Date.now() < until)
      await new Promise((resolve) => setTimeout(resolve, 50));
    if (isAlive(pid)) process.kill(pid, 'SIGKILL');
    ended.push(name);
  }
  await forgetParts(file);
  return ended;
}
