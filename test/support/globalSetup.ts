import { mkdtemp, chmod, realpath, statfs } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { availableMemory } from 'node:process';
import { openDatabase } from '../../db/core/knex.ts';
import { migrateUp } from '../../db/core/migrate.ts';
import { freePort } from '../../dev/freePort.ts';
import { ensureDatabase, startPostgres } from '../../dev/postgres.ts';
import { createConsole } from '../../dev/console.ts';
import { temporalBinary } from '../../dev/temporalBinary.ts';
import { workflowBundle } from '../../temporal/bundle.ts';
import { createLog } from '../../platform/log.ts';
import { servers } from './servers.ts';
import { keepTemporal } from './temporalKeeper.ts';

/** Linux keeps these files in memory: PostgreSQL creates a thousand files for each copy of a database. */
const MEMORY_FOLDER = '/dev/shm';
const MEMORY_NEEDED_BYTES = 6 * 2 ** 30;

/**
 * Nothing has to survive the machine, and each copy of a database makes a checkpoint, after which whole pages
 * are logged. Autovacuum would lock tables at any time: what waits only a moment for a lock would fail.
 */
const SETTINGS = {
  fsync: 'off',
  full_page_writes: 'off',
  autovacuum: 'off',
  wal_level: 'minimal',
  max_wal_senders: '0',
  max_connections: '300',
};

/** Where the servers' files go: into memory if enough is free, otherwise to the folder for temporary files. */
async function parentFolder(): Promise<string> {
  try {
    const { bavail, bsize } = await statfs(MEMORY_FOLDER);
    const freeBytes = Math.min(bavail * bsize, availableMemory());
    return freeBytes >= MEMORY_NEEDED_BYTES ? MEMORY_FOLDER : os.tmpdir();
  } catch {
    return os.tmpdir();
  }
}

/**
 * Starts what all test files share, unless another group of tests has done so. Their addresses go into the environment,
 * which the files inherit.
 */
export default async function globalSetup(): Promise<void> {
  if (process.env.TEST_POSTGRES_URL !== undefined) return;
  const folder = await realpath(await mkdtemp(path.join(await parentFolder(), 'holdfast-test-')));
  await chmod(folder, 0o711);
  const dataDir = path.join(folder, 'postgres');
  const postgres = await startPostgres({
    dataDir,
    port: await freePort(0),
    logFile: path.join(folder, 'postgres.log'),
    binFolder: process.env.TEST_POSTGRES_BIN,
    settings: { ...SETTINGS, unix_socket_directories: dataDir },
  });
  servers.add(folder, () => postgres.stop());
  await ensureDatabase(postgres, 'template');
  const db = openDatabase({
    url: postgres.url('template'),
    poolSize: 3,
    statementTimeoutMs: 0,
    log: createLog('silent', false),
  });
  await migrateUp(db);
  await db.destroy();

  const binary = await temporalBinary(createConsole());
  // Temporal runs for minutes only: fewer collections, more memory.
  process.env.GOGC ??= '400';
  const port = await freePort(0);
  const stopTemporal = await keepTemporal({
    binary,
    dbFile: path.join(folder, 'temporal.db'),
    port,
    uiPort: await freePort(0),
    logFile: path.join(folder, 'temporal.log'),
  });
  servers.add(folder, stopTemporal);
  await workflowBundle();

  // Each query costs less than over TCP.
  process.env.TEST_POSTGRES_URL = postgres
    .url('')
    .replace('@127.0.0.1:', `@${encodeURIComponent(dataDir)}:`);
  process.env.TEST_TEMPORAL_ADDRESS = `127.0.0.1:${port}`;
  process.env.TEST_TEMPORAL_BINARY = binary;
}
