import { randomBytes } from 'node:crypto';
import { lstat, mkdir, readdir, readFile, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { eventsHead } from './eventsFile.ts';
import { createPipes, type Pipe } from './pipes.ts';
import { killLeft } from './processTree.ts';
import { removeFolder, type OnLeft } from './removeFolder.ts';

/** The folder of one run, with what its command reads and writes. */
export type RunFolder = {
  folder: string;
  /** The unique name of the folder, which marks the processes of the run. */
  mark: string;
  payload: string;
  target: string;
  result: string;
  events: string;
  artifacts: string;
  home: string;
  /** Temporary files. Its path is short, because those of sockets have 108 bytes at most. */
  tmp: string;
  /** Files of secrets. */
  secrets: string;
  /** Removes the folder and that of temporary files. It never fails: what is left is passed to `onLeft` of the work folder. */
  remove(): Promise<void>;
};

/** The folders of the runs of this process, in a folder that runners of one machine share. */
export type WorkFolder = {
  /** What belongs to this process alone. */
  folder: string;
  createRun(): Promise<RunFolder>;
  /** Opens the pipes of one command. */
  takePipes(): Promise<[stdout: Pipe, stderr: Pipe]>;
  remove(): Promise<void>;
};

const BLOCK_BYTES = 4_096;

const MARK = /^hfrun-[0-9a-f]{32}$/;

/** When a process has started, in clock ticks since the machine has; '' if it does not run. */
async function startOf(id: number): Promise<string> {
  const text = await readFile(`/proc/${id}/stat`, 'latin1').catch(() => undefined);
  if (text !== undefined) return text.slice(text.lastIndexOf(')')).split(' ')[20] ?? '';
  try {
    process.kill(id, 0);
    return 'unknown';
  } catch {
    return '';
  }
}

/**
 * Opens a work folder. Runs that a killed runner has left there are ended and removed. `onLeft` is called for each
 * folder that cannot be removed. Error: the folder cannot be created or is not writable.
 */
export async function openWorkFolder(
  root: string,
  onLeft: OnLeft = () => undefined,
): Promise<WorkFolder> {
  await mkdir(root, { recursive: true, mode: 0o700 });
  await requireOwn(root);
  const own = path.join(root, `${process.pid}-${await startOf(process.pid)}`);
  for (const name of await readdir(root)) await removeIfLeft(path.join(root, name), onLeft);
  await mkdir(own, { mode: 0o700, recursive: true });
  const pipes = createPipes(own);
  return {
    folder: own,
    createRun: () => createRun(own, onLeft),
    takePipes: () => pipes.take(),
    remove: () => removeFolder(own, onLeft),
  };
}

/** Error: others can write to the folder, as to one that they have made in `/tmp` before. */
async function requireOwn(folder: string): Promise<void> {
  const { uid, mode } = await lstat(folder);
  const isOwn = process.getuid === undefined || uid === process.getuid();
  if (!isOwn || (mode & 0o022) !== 0)
    throw new Error(
      `The work folder ${folder} must belong to the runner, and only it may write there`,
    );
}

/** Removes the folder of a runner that does not run any more, after its processes. */
async function removeIfLeft(folder: string, onLeft: OnLeft): Promise<void> {
  const [, id, start] = /^(\d+)-(\w*)$/.exec(path.basename(folder)) ?? [];
  if (id === undefined) return;
  if ((await startOf(Number(id))) === start) return;
  // Another runner that starts at the same time may have removed it.
  for (const mark of await readdir(folder).catch(() => []))
    if (MARK.test(mark)) await killLeft({ session: -1, group: undefined, mark });
  await removeFolder(folder, onLeft);
}

/** Error: the folder cannot be made. */
async function createRun(parent: string, onLeft: OnLeft): Promise<RunFolder> {
  const id = randomBytes(16).toString('hex');
  const mark = `hfrun-${id}`;
  const folder = path.join(parent, mark);
  const tmp = path.join(parent, `tmp-${id.slice(0, 8)}`);
  const inside = (name: string) => path.join(folder, name);
  const run: RunFolder = {
    folder,
    mark,
    payload: inside('payload.json'),
    target: inside('target.json'),
    result: inside('result.json'),
    events: inside('events.ndjson'),
    artifacts: inside('artifacts'),
    home: inside('home'),
    tmp,
    secrets: inside('secrets'),
    async remove() {
      await Promise.all([folder, tmp].map((each) => removeFolder(each, onLeft)));
    },
  };
  try {
    await mkdir(folder, { mode: 0o700 });
    await Promise.all([
      ...[run.artifacts, run.home, run.secrets, run.tmp].map((each) =>
        mkdir(each, { mode: 0o700 }),
      ),
      writeFile(run.events, eventsHead(), { mode: 0o600 }),
      // A full disk shows before an attempt begins.
      writeFile(run.payload, ' '.repeat(BLOCK_BYTES), { mode: 0o600 }),
    ]);
    return run;
  } catch (error) {
    await run.remove();
    throw error;
  }
}
