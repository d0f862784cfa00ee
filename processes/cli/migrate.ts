import { parseArgs } from 'node:util';
import { createLog, type Log } from '../../platform/log.ts';
import { readConfig } from '../../platform/config.ts';
import { openDatabase, type Knex } from '../../db/core/knex.ts';
import { migrateDown, migrateUp, pendingMigrations } from '../../db/core/migrate.ts';
import { planRevert, planRevertAll } from '../../db/core/revertPlan.ts';
import { EXIT_USAGE, print } from './command.ts';

const USAGE = `npm run migrate -- up [--wait <seconds>]
npm run migrate -- down [--accept-loss] [--wait <seconds>]
npm run migrate -- down-all [--accept-loss] [--wait <seconds>]
npm run migrate -- pending`;

const DEFAULT_WAIT_SECONDS = 600;
const MAX_WAIT_SECONDS = 86_400;

type Options = { db: Knex; log: Log; waitMs: number; acceptsLoss: boolean };

async function up({ db, log, waitMs }: Options): Promise<number> {
  log.info({ migrations: await migrateUp(db, { log, waitMs }) }, 'up');
  return 0;
}

async function pending({ db, log }: Options): Promise<number> {
  log.info({ migrations: await pendingMigrations(db) }, 'pending');
  return 0;
}

/** Says what would be lost. Reverts only if that was accepted. */
async function revert(
  { db, log, waitMs, acceptsLoss }: Options,
  all: boolean,
  losses: readonly string[],
): Promise<number> {
  print(losses.length === 0 ? 'No data is lost.' : 'Lost for ever:');
  for (const loss of losses) print(`  ${loss}`);
  if (!acceptsLoss) {
    print(
      'Nothing was changed. Stop all processes, make a backup, and add --accept-loss to go on.',
    );
    return EXIT_USAGE;
  }
  log.info({ migrations: await migrateDown(db, all, { log, waitMs }) }, 'down');
  return 0;
}

async function down(options: Options): Promise<number> {
  const plan = await planRevert(options.db);
  if (!plan) {
    print('There is no migration to revert.');
    return 0;
  }
  print(`This reverts ${plan.migration}.`);
  return revert(options, false, plan.losses);
}

async function downAll(options: Options): Promise<number> {
  print('This reverts all migrations.');
  return revert(options, true, await planRevertAll(options.db));
}

const COMMANDS: Readonly<Record<string, (options: Options) => Promise<number>>> = {
  up,
  pending,
  down,
  'down-all': downAll,
};

function readArguments(args: readonly string[]) {
  try {
    const { positionals, values } = parseArgs({
      args: [...args],
      allowPositionals: true,
      options: { wait: { type: 'string' }, 'accept-loss': { type: 'boolean', default: false } },
    });
    const run = COMMANDS[positionals[0] ?? 'up'];
    const waitSeconds = Number(values.wait ?? DEFAULT_WAIT_SECONDS);
    const isValid = waitSeconds >= 0 && waitSeconds <= MAX_WAIT_SECONDS && positionals.length <= 1;
    return run && isValid
      ? { run, waitMs: waitSeconds * 1_000, acceptsLoss: values['accept-loss'] }
      : undefined;
  } catch {
    return undefined;
  }
}

/** `npm run migrate`: migrates the database schema. Returns the exit code. Error: `ConfigError`. */
async function main(args: readonly string[]): Promise<number> {
  const command = readArguments(args);
  if (!command) {
    process.stderr.write(`${USAGE}\n`);
    return EXIT_USAGE;
  }
  const config = readConfig(process.env);
  const log = createLog(config.logLevel);
  const db = openDatabase({ url: config.databaseUrl, poolSize: 3, statementTimeoutMs: 0, log });
  try {
    return await command.run({ db, log, ...command });
  } finally {
    await db.destroy();
  }
}

main(process.argv.slice(2)).then(
  (code) => process.exit(code),
  (error: unknown) => {
    process.stderr.write(`${error instanceof Error ? error.message : String(error)}\n`);
    process.exit(1);
  },
);
