import { readdir, stat, utimes, writeFile } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';

const FILE = 'alive';
const EVERY_MS = 5_000;
/** A machine may be busy for some seconds. */
const LOST_MS = 30_000;

/** Where a runner keeps the files of its commands, unless `HOLDFAST_RUNNER_FOLDER` names another folder. */
export const defaultWorkFolder = (): string =>
  path.join(os.tmpdir(), `holdfast-runner-${process.getuid?.() ?? 0}`);

/**
 * Lets a check from outside see that the runner responds: it has no port. The time of a file in `folder` is
 * renewed, which needs no space on the disk. Returns what ends it. Error: the folder is not writable.
 */
export async function keepHeartbeat(folder: string): Promise<() => void> {
  const file = path.join(folder, FILE);
  await writeFile(file, '', { mode: 0o600 });
  const renew = () => {
    const now = new Date();
    // The check finds out if it fails for long.
    utimes(file, now, now).catch(() => undefined);
  };
  const timer = setInterval(renew, EVERY_MS);
  timer.unref();
  return () => clearInterval(timer);
}

/** True if a runner with this work folder responds. */
export async function hasHeartbeat(workFolder: string, now = Date.now()): Promise<boolean> {
  const folders = await readdir(workFolder).catch(() => []);
  const times = await Promise.all(
    folders.map((folder) =>
      stat(path.join(workFolder, folder, FILE)).then(
        ({ mtimeMs }) => mtimeMs,
        () => 0,
      ),
    ),
  );
  return times.some((time) => Math.abs(now - time) < LOST_MS);
}
