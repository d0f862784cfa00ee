import { readFile } from 'node:fs/promises';
import path from 'node:path';
import { ConfigError } from '../platform/config.ts';
import { masterKeys } from './masterKeys.ts';
import { temporalAddressFile } from './stack.ts';

/**
 * Returns the environment variables with which a command reaches the embedded stack of a data
 * folder. Error: `ConfigError` if none is running.
 */
export async function readRunningStack(folder: string): Promise<Record<string, string>> {
  const dataDir = path.join(folder, 'postgres');
  try {
    const password = (await readFile(`${dataDir}.password`, 'utf8')).trim();
    // The fourth line is the port (PostgreSQL documentation, 65.1).
    const port =
      (await readFile(path.join(dataDir, 'postmaster.pid'), 'utf8')).split('\n')[3]?.trim() ?? '';
    const temporal = await readFile(temporalAddressFile(folder), 'utf8');
    return {
      TEMPORAL_ADDRESS: temporal.trim(),
      DATABASE_URL: `postgres://holdfast:${password}@127.0.0.1:${port}/holdfast`,
      HOLDFAST_MASTER_KEYS: await masterKeys(folder),
      HOLDFAST_BACKUP_DIR: path.join(folder, 'backups'),
    };
  } catch {
    throw new ConfigError(
      `DATABASE_URL is not set, and no embedded stack runs on ${folder}. Run npm start first.`,
    );
  }
}
