import type { Knex } from './knex.ts';
import { assertKnown, migrationsToRevert } from './migrate.ts';
import { withShortLockWaits } from './lockWaits.ts';
import { MIGRATIONS } from '../migrations/index.ts';
import type { Migrations } from './migration.ts';
import { counted } from '../../domain/shared/counted.ts';
import { pluralOf } from '../../domain/shared/nouns.ts';

/** What reverting a migration deletes or changes; one line for each table or column. */
export type RevertPlan = { migration: string; losses: string[] };

/** Longest count of one table or column; beyond it the number is not said. */
const COUNT_TIMEOUT_MS = 10_000;

const READ_SCHEMA = `
  SELECT c.relname AS "table", array_agg(a.attname::text ORDER BY a.attnum) AS columns
  FROM pg_class AS c JOIN pg_attribute AS a ON a.attrelid = c.oid
  WHERE c.relkind IN ('r', 'p') AND NOT c.relispartition AND c.relnamespace = current_schema()::regnamespace
    AND a.attnum > 0 AND NOT a.attisdropped
  GROUP BY c.relname`;

/** Rows that this transaction has deleted or updated, and that were there before. */
const READ_CHANGES = `
  SELECT relname AS "table", n_tup_del::integer AS deleted, n_tup_upd::integer AS updated
  FROM pg_stat_xact_user_tables WHERE n_tup_del + n_tup_upd > 0 AND relname <> 'schema_migrations'`;

type Columns = Map<string, readonly string[]>;

async function readSchema(db: Knex): Promise<Columns> {
  const { rows } = await db.raw<{ rows: { table: string; columns: string[] }[] }>(READ_SCHEMA);
  return new Map(rows.map(({ table, columns }) => [table, columns]));
}

async function count(db: Knex, sql: string, bindings: string[]): Promise<number> {
  const { rows } = await db.transaction(async (trx) => {
    await trx.raw(`SET LOCAL statement_timeout = ${COUNT_TIMEOUT_MS}`);
    return trx.raw<{ rows: { n: number }[] }>(sql, bindings);
  });
  return rows[0]?.n ?? 0;
}

/** Undefined when counting takes too long. */
const countOrUnknown = (db: Knex, sql: string, bindings: string[]): Promise<number | undefined> =>
  count(db, sql, bindings).catch(() => undefined);

const countText = (found: number | undefined, noun: string): string =>
  found === undefined ? `an unknown number of ${pluralOf(noun)}` : counted(found, noun);

const lossOfTable = async (db: Knex, table: string): Promise<string> =>
  `the table ${table} with ${countText(await countOrUnknown(db, 'SELECT count(*) AS n FROM ??', [table]), 'row')}`;

const lossOfColumn = async (db: Knex, table: string, column: string): Promise<string> => {
  const sql = 'SELECT count(??) AS n FROM ??';
  return `the column ${table}.${column} with ${countText(await countOrUnknown(db, sql, [column, table]), 'value')}`;
};

/** Ends a transaction that was made to see what a migration does. */
class Seen extends Error {}

/** Reverts a migration in a transaction that is rolled back. Returns what that would have changed. */
async function tryRevert(
  db: Knex,
  revert: (trx: Knex) => Promise<void>,
): Promise<{ after: Columns; changes: string[] }> {
  let seen: { after: Columns; changes: string[] } | undefined;
  const waits = { deadline: Date.now() + 60_000, onBlocked: () => undefined };
  await withShortLockWaits(db, waits, async (trx) => {
    await revert(trx);
    const { rows } = await trx.raw<{
      rows: { table: string; deleted: number; updated: number }[];
    }>(READ_CHANGES);
    const changes = rows.flatMap(({ table, deleted, updated }) => [
      ...(deleted > 0 ? [`${counted(deleted, 'row')} of ${table}`] : []),
      ...(updated > 0 ? [`the former values of ${counted(updated, 'row')} of ${table}`] : []),
    ]);
    seen = { after: await readSchema(trx), changes };
    throw new Seen();
  }).catch((error: unknown) => {
    if (!(error instanceof Seen)) throw error;
  });
  if (!seen) throw new Error('The migration was not reverted');
  return seen;
}

/**
 * What reverting the newest migration would lose; undefined when there is none. It is reverted in a
 * transaction that is rolled back, which locks its tables for a moment. Errors: `SchemaUnknown`,
 * `MigrationBlocked`; those of the migration.
 */
export async function planRevert(
  db: Knex,
  migrations: Migrations = MIGRATIONS,
): Promise<RevertPlan | undefined> {
  await assertKnown({ db, migrations });
  const [name] = await migrationsToRevert(db, false, migrations);
  const migration = name === undefined ? undefined : migrations[name];
  if (name === undefined || !migration) return undefined;
  // Without a transaction there are indexes only, which hold no data.
  if (migration.config?.transaction === false) return { migration: name, losses: [] };
  const before = await readSchema(db);
  const { after, changes } = await tryRevert(db, (trx) => migration.down(trx));
  const losses = [];
  for (const [table, columns] of before) {
    const kept = after.get(table);
    if (!kept) losses.push(await lossOfTable(db, table));
    else
      for (const column of columns)
        if (!kept.includes(column)) losses.push(await lossOfColumn(db, table, column));
  }
  return { migration: name, losses: [...losses, ...changes] };
}

/** What reverting all migrations would lose: every table that has rows. */
export async function planRevertAll(db: Knex): Promise<string[]> {
  const losses = [];
  for (const table of (await readSchema(db)).keys()) {
    const rows = await countOrUnknown(db, 'SELECT count(*) AS n FROM ??', [table]);
    if (rows !== 0) losses.push(`the table ${table} with ${countText(rows, 'row')}`);
  }
  return losses;
}
