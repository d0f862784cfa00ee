import { randomBytes } from 'node:crypto';
import { readFile, writeFile } from 'node:fs/promises';
import path from 'node:path';

/** The master key of a data folder, made the first time: what is sealed with it is of use only beside it. */
export async function masterKeys(folder: string): Promise<string> {
  const file = path.join(folder, 'master.key');
  // `wx`: two that start at once must not each have a key.
  await writeFile(file, `first:${randomBytes(32).toString('base64')}\n`, {
    mode: 0o600,
    flag: 'wx',
  }).catch((error: unknown) => {
    if ((error as { code?: string }).code !== 'EEXIST') throw error;
  });
  return (await readFile(file, 'utf8')).trim();
}
