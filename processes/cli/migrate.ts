import { createLog } from '../../platform/log.ts';
import { ConfigError, readConfig } from '../../platform/config.ts';
import { openDatabase } from '../../db/core/knex.ts';
import { migrateDown, migrateUp, pendingMigrations } from '../../db/core/migrate.ts';

const USAGE = 'npm run migrate -- up | down | down-all | pending';

/** `npm run migrate`: migrates the database schema. Error: `ConfigError`. */
async function main(command: string): Promise<void> {
  const config = readConfig(process.env);
  const log = createLog(config.logLevel);
  const db = openDatabase({ url: config.databaseUrl, poolSize: 3, statementTimeoutMs: 0, log });
  const commands: Record<string, () => Promise<string[]>> = {
    up: () => migrateUp(db),
    down: () => migrateDown(db),
    'down-all': () => migrateDown(db, true),
    pending: () => pendingMigrations(db),
  };
  try {
    const run = commands[command];
    if (!run) throw new ConfigError(`Unknown command ${command}. ${USAGE}`);
    log.info({ migrations: await run() }, command);
  } finally {
    await db.destroy();
  }
}

main(process.argv[2] ?? 'up').catch((error: unknown) => {
  process.stderr.write(`${error instanceof Error ? error.message : String(error)}\n`);
  process.exit(1);
});
