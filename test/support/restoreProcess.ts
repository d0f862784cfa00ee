import { createReadStream } from 'node:fs';
import { openDatabase } from '../../db/core/knex.ts';
import { readArchive } from '../../platform/archive/index.ts';
import { createLog } from '../../platform/log.ts';
import { createVault } from '../../platform/vault.ts';
import { unsealWith } from '../../services/backups/archives.ts';
import { importArchive } from '../../services/backups/importArchive.ts';

/**
 * Restores the file of an archive into an empty database, with all tables loaded as large ones, in a
 * process that tests can kill: `restoreProcess.ts <url> <file> <key as hex>`.
 */
const [databaseUrl = '', file = '', key = ''] = process.argv.slice(2);
const log = createLog('silent', false);
const db = openDatabase({ url: databaseUrl, poolSize: 1, statementTimeoutMs: 0, log });
const unseal = unsealWith(createVault([{ id: 'test', key: Buffer.from(key, 'hex') }]));
await importArchive({ db, databaseUrl }, readArchive(createReadStream(file), unseal), {
  largeTableBytes: 1,
});
await db.destroy();
