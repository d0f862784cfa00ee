import { chmod, chown, constants, lstat, mkdir, readdir, realpath } from 'node:fs/promises';
import path from 'node:path';

/** What is for the owner only, in new files and folders of this process and of its servers. */
const OWNER_ONLY = 0o077;

/** The files of a data folder, and the folder of its archives. PostgreSQL protects its own. */
const PRIVATE_FILES = [
  'master.key',
  'servers.json',
  'temporal.address',
  'postgres.password',
  'postgres.log',
  'temporal.log',
  'temporal.db',
  'temporal.db-wal',
  'temporal.db-shm',
  'temporal.db-journal',
];
const ARCHIVES = 'backups';

const isRoot = () => process.getuid?.() === 0;

/**
 * Creates the data folder and returns its real path. Nobody but its owner may read the folder and
 * what earlier versions have left in it, or what this process creates from now on.
 */
export async function prepareDataFolder(folder: string): Promise<string> {
  process.umask(OWNER_ONLY);
  await mkdir(folder, { recursive: true, mode: 0o700 });
  const real = await realpath(folder);
  // A folder such as /tmp is not Holdfast's alone.
  const { mode } = await lstat(real);
  if ((mode & constants.S_IFMT) === constants.S_IFDIR && (mode & 0o1000) === 0)
    // As root, the group may be that of PostgreSQL, see `letGroupPass`.
    await restrict(real, isRoot() ? 0o710 : 0o700);
  for (const name of PRIVATE_FILES) await restrict(path.join(real, name), 0o600);
  const archives = path.join(real, ARCHIVES);
  await restrict(archives, 0o700);
  for (const name of await readdir(archives).catch(() => []))
    await restrict(path.join(archives, name), 0o600);
  return real;
}

/** Takes permissions beyond `allowed` from a file or folder, if it exists. */
async function restrict(file: string, allowed: number): Promise<void> {
  try {
    const found = await lstat(file);
    const mode = found.mode & 0o777;
    if (found.isSymbolicLink() || (mode & ~allowed) === 0) return;
    await chmod(file, mode & allowed);
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code !== 'ENOENT')
      process.emitWarning(`${file} may be readable by others: its mode cannot be set (${code}).`);
  }
}

/**
 * Lets a group pass through a folder that nobody else may enter, so that PostgreSQL, which runs
 * under another account than root, reaches its files.
 */
export async function letGroupPass(folder: string, gid: number): Promise<void> {
  const { mode, uid } = await lstat(folder);
  if ((mode & constants.S_IXOTH) !== 0) return;
  await chown(folder, uid, gid);
  await chmod(folder, (mode & 0o777) | constants.S_IXGRP);
}
