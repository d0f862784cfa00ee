import { createLog, type Log } from '../../platform/log.ts';
import { readDatabaseConfig } from '../../platform/config.ts';
import { openDatabase, type Knex } from '../../db/core/knex.ts';
import { migrateDown, migrateUp, pendingMigrations } from '../../db/core/migrate.ts';
import { findRepeatedNames } from '../../db/auth/repeatedNames.ts';
import { planRevert, planRevertAll } from '../../db/core/revertPlan.ts';
import {
  commandLine,
  complain,
  EXIT_USAGE,
  print,
  readArguments,
  runProgram,
  UsageError,
} from './program.ts';

const USAGE = [
  'up [--wait <seconds>]',
  'down [--accept-loss] [--wait <seconds>]',
  'down-all [--accept-loss] [--wait <seconds>]',
  'pending',
]
  .map((args) => commandLine('migrate', args))
  .join('\n');

const DEFAULT_WAIT_SECONDS = 600;
const MAX_WAIT_SECONDS = 86_400;

type Options = { db: Knex; log: Log; waitMs: number; acceptsLoss: boolean };

/** The answer is for a reader, whatever the log level: one migration a line, a sentence if there is none. */
function printMigrations(migrations: readonly string[], ifNone: string): number {
  for (const migration of migrations) print(migration);
  if (migrations.length === 0) complain(ifNone);
  return 0;
}

/** More are named when the first ones are renamed. */
const MAX_REPEATED_NAMES = 20;

/** Names that were two and are one now are no reason to stop: who has them decides which record keeps its name. */
async function reportRepeatedNames(db: Knex): Promise<void> {
  for (const { what, records } of await findRepeatedNames(db, MAX_REPEATED_NAMES))
    complain(`One name has several ${what}: ${records.join(', ')}. See docs/upgrading.md.`);
}

async function up({ db, log, waitMs }: Options): Promise<number> {
  const code = printMigrations(
    await migrateUp(db, { log, waitMs }),
    'There was no migration to run.',
  );
  await reportRepeatedNames(db);
  return code;
}

const pending = async ({ db }: Options): Promise<number> =>
  printMigrations(await pendingMigrations(db), 'All migrations have run.');

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
  return printMigrations(await migrateDown(db, all, { log, waitMs }), 'Nothing was reverted.');
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

function readCommand(args: readonly string[]) {
  const { values, words } = readArguments(args, {
    options: { wait: { type: 'string' }, 'accept-loss': { type: 'boolean' } },
    words: 1,
  });
  const [name = 'up'] = words;
  const run = COMMANDS[name];
  if (!run) throw new UsageError(`Unknown: ${name}`);
  const waitSeconds = Number(values.wait ?? DEFAULT_WAIT_SECONDS);
  if (!(waitSeconds >= 0 && waitSeconds <= MAX_WAIT_SECONDS))
    throw new UsageError(`--wait is a number from 0 to ${MAX_WAIT_SECONDS}`);
  return { run, waitMs: waitSeconds * 1_000, acceptsLoss: values['accept-loss'] ?? false };
}

/** `npm run migrate`: migrates the database schema. Returns the exit code. Error: `ConfigError`. */
async function main(args: readonly string[]): Promise<number> {
  const command = readCommand(args);
  const { databaseUrl, logLevel } = readDatabaseConfig(process.env);
  const log = createLog(logLevel);
  const db = openDatabase({ url: databaseUrl, poolSize: 3, statementTimeoutMs: 0, log });
  try {
    return await command.run({ db, log, ...command });
  } finally {
    await db.destroy();
  }
}

await runProgram(() => USAGE, main);
