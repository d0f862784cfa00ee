import { randomBytes } from 'node:crypto';
import { readFile, writeFile } from 'node:fs/promises';
import path from 'node:path';

/**
 * Returns the master key of a data folder, in the form of `HOLDFAST_MASTER_KEYS`. Creates it the
 * first time.
 */
export async function masterKeys(folder: string): Promise<string> {
  const file = path.join(folder, 'master.key');
  // `wx` fails if the file exists, so that two concurrent starts use the same key.
  await writeFile(file, `first:${randomBytes(32).toString('base64')}\n`, {
    mode: 0o600,
    flag: 'wx',
  }).catch((error: unknown) => {
    if ((error as { code?: string }).code !== 'EEXIST') throw error;
  });
  return (await readFile(file, 'utf8')).trim();
}
