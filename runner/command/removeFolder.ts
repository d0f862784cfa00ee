import { chmod, readdir, rm } from 'node:fs/promises';
import path from 'node:path';

/** Called when a folder, or a part of it, could not be removed. */
export type OnLeft = (folder: string, error: unknown) => void;

/**
 * Removes a folder and what is in it. It never fails: commands can leave what their user cannot remove, such as files of
 * another user, and that must keep a runner neither from its next command nor from its next start.
 */
export async function removeFolder(folder: string, onLeft: OnLeft): Promise<void> {
  const remove = () => rm(folder, { recursive: true, force: true, maxRetries: 3, retryDelay: 50 });
  try {
    await remove().catch(async () => {
      await makeWritable(folder);
      await remove();
    });
  } catch (error) {
    onLeft(folder, error);
  }
}

/** Makes all directories of a tree writable: the caches of package managers are not. */
async function makeWritable(root: string): Promise<void> {
  const rest = [root];
  for (let folder = rest.pop(); folder !== undefined; folder = rest.pop()) {
    // It may belong to another user; then it cannot be removed, but others can.
    await chmod(folder, 0o700).catch(() => undefined);
    const entries = await readdir(folder, { withFileTypes: true }).catch(() => []);
    for (const entry of entries) if (entry.isDirectory()) rest.push(path.join(folder, entry.name));
  }
}
