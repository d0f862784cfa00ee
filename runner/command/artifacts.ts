import type { Dirent } from 'node:fs';
import { lstat, opendir } from 'node:fs/promises';
import path from 'node:path';
import { errorMessage } from '../../domain/shared/errorMessage.ts';
import type { AttemptTools } from './attempt.ts';
import type { Output } from './output.ts';

const MAX_FILES = 20;
const MAX_BYTES = 67_108_864;
/** A command can leave any number of files: more are not listed. */
const MAX_LISTED = 1_000;
const NAME = /^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$/;

/**
 * Stores the files that a command has left in its artifacts folder, in the order of their names. What is
 * not stored becomes a line of the log. Error: the reason of `signal`.
 */
export async function storeArtifacts(
  folder: string,
  tools: Pick<AttemptTools, 'artifact'>,
  output: Pick<Output, 'note'>,
  signal: AbortSignal,
): Promise<void> {
  const entries = await list(folder);
  let [files, bytes, leftOut] = [0, 0, 0];
  for (const entry of entries.sort((a, b) => (a.name < b.name ? -1 : 1))) {
    signal.throwIfAborted();
    const file = path.join(folder, entry.name);
    const { size } = await lstat(file);
    const isStorable = entry.isFile() && NAME.test(entry.name);
    if (!isStorable || files >= MAX_FILES || bytes + size > MAX_BYTES) {
      leftOut++;
      continue;
    }
    files++;
    bytes += size;
    try {
      await tools.artifact(entry.name, file);
    } catch (error) {
      signal.throwIfAborted();
      const reason = errorMessage(error);
      output.note('warn', `The artifact ${entry.name} was not stored: ${reason}`);
    }
  }
  if (leftOut > 0)
    output.note(
      'warn',
      `Artifacts were not stored: ${leftOut}. A job has at most ${MAX_FILES} files of together ` +
        `${MAX_BYTES / 1_048_576} MiB, with names of letters, digits, dots, hyphens and underscores`,
    );
}

async function list(folder: string): Promise<Dirent[]> {
  const entries: Dirent[] = [];
  // A command may have replaced the folder.
  if (!(await lstat(folder).catch(() => undefined))?.isDirectory()) return entries;
  for await (const entry of await opendir(folder)) {
    if (entries.length === MAX_LISTED) break;
    entries.push(entry);
  }
  return entries;
}
