import type { Knex } from '../core/knex.ts';
import { quoted, type Ask } from './catalog.ts';
import {
  askIn,
  diffOf,
  isWorkedOut,
  list,
  live,
  loaded,
  same,
  type PlannedTable,
  type RestorePlan,
} from './differences.ts';
import { settleAfter, type Followed } from './settle.ts';

/** Another restore, or the clean-up after one, shall not run at the same time. Any constant of our own. */
const RESTORE_LOCK = 7_203_115;

/** From so many changed rows on, indexes and references are made again instead of kept up row by row. */
const BULK_ROWS = 50_000;

/**
 * Keeps writers from the tables that are to be as they were, readers not. Whoever writes already is waited for; who comes later
 * waits until the transaction ends. `only` are the tables that matter, where not all do. Error: SQLSTATE 55P03 or 57014 when that takes
 * longer than `limitMs` for all of them.
 */
export async function lockForSwap(
  trx: Knex,
  { tables }: RestorePlan,
  limitMs: number,
  only?: ReadonlySet<string>,
): Promise<void> {
  await trx.raw(
    `SET LOCAL statement_timeout = ${Math.trunc(limitMs)}; SET LOCAL idle_in_transaction_session_timeout = 0; SET LOCAL client_connection_check_interval = '2s'`,
  );
  await trx.raw('SELECT pg_advisory_xact_lock(?)', [RESTORE_LOCK]);
  const names = tables
    .filter(({ table, part }) => part === 'state' && (only?.has(table.name) ?? true))
    .map(({ table }) => live(table));
  // Whoever publishes events has this row before the webhooks that hear of them.
  await trx.raw('SELECT FROM event_head FOR UPDATE');
  if (names.length > 0) await trx.raw(`LOCK TABLE ${names.join(', ')} IN EXCLUSIVE MODE`);
  await trx.raw('SET LOCAL statement_timeout = 0');
}

/** True when everything that was loaded is still there: tables without a log do not survive a crash of the server. */
export async function isWhole(ask: Ask, { schema, tables }: RestorePlan): Promise<boolean> {
  for (const { table } of tables) {
    const [row] = await ask<{ whole: boolean }>(
      `SELECT (SELECT count(*) FROM ${loaded(schema, table)}) = (SELECT rows FROM ${quoted(schema)}._loaded WHERE name = $1) AS whole`,
      [table.name],
    );
    if (!row?.whole) return false;
  }
  return true;
}

/**
 * Triggers that are not to run. Where all of a table is put back, what it was is right by itself; where others' records lie between,
 * those that work out a row from them run, and those that check it.
 */
async function idle(ask: Ask, plan: RestorePlan, planned: PlannedTable): Promise<string[]> {
  // Bit 1 of tgtype says that a trigger runs before the row is written (pg_trigger.h).
  const which = isExact(plan, planned) ? 'true' : 'NOT tgdeferrable AND tgtype & 2 = 0';
  const rows = await ask<{ name: string }>(
    `SELECT tgname::text AS name FROM pg_trigger WHERE tgrelid = '${live(planned.table)}'::regclass AND NOT tgisinternal AND tgname NOT LIKE 'audit\\_%' AND ${which}`,
  );
  return rows.map(({ name }) => name);
}

/** True where a table becomes what it was as a whole. */
const isExact = ({ extent }: RestorePlan, { part }: PlannedTable): boolean =>
  part === 'state' && extent.tenantId === null;

type Definition = { drop: string; create: string };

/** What is dropped while many rows change, and made again after it: indexes that are no constraint, and references. */
async function weights(ask: Ask, { table }: PlannedTable): Promise<Definition[]> {
  const references = await ask<Definition>(
    `SELECT format('ALTER TABLE %s DROP CONSTRAINT %I', conrelid::regclass, conname) AS drop,
       format('ALTER TABLE %s ADD CONSTRAINT %I %s', conrelid::regclass, conname, pg_get_constraintdef(oid)) AS create
     FROM pg_constraint WHERE contype = 'f' AND '${live(table)}'::regclass IN (conrelid, confrelid)`,
  );
  const indexes = await ask<Definition>(
    `SELECT format('DROP INDEX %s', indexrelid::regclass) AS drop, pg_get_indexdef(indexrelid) AS create
     FROM pg_index AS i WHERE indrelid = '${live(table)}'::regclass AND NOT indisprimary AND NOT EXISTS (SELECT FROM pg_constraint WHERE conindid = i.indexrelid)`,
  );
  return [...references, ...indexes];
}

/** Puts the rows of one table where they belong: those that change go first, so that none stands in another's way. */
async function takeOut(ask: Ask, planned: PlannedTable): Promise<void> {
  const { table } = planned;
  const own = list([...table.key, ...table.own], 't');
  await ask(
    `CREATE TEMP TABLE ${quoted(`_own_${table.name}`)} ON COMMIT DROP AS SELECT ${own} FROM ${live(table)} AS t JOIN ${diffOf(table)} AS d ON ${same(table.key, 't', 'd')} WHERE d.change = 'changed'`,
  );
  const which = table.tombstone === null ? `d.change <> 'created'` : `d.change = 'changed'`;
  await ask(
    `DELETE FROM ${live(table)} AS t USING ${diffOf(table)} AS d WHERE ${which} AND ${same(table.key, 't', 'd')}`,
  );
  if (table.tombstone === null) return;
  await ask(
    `UPDATE ${live(table)} AS t SET ${table.tombstone.replaceAll(':now', 'now()')} FROM ${diffOf(table)} AS d WHERE d.change = 'deleted' AND ${same(table.key, 't', 'd')}`,
  );
}

async function putIn(ask: Ask, plan: RestorePlan, planned: PlannedTable): Promise<void> {
  const [{ schema }, { table, columns, part }] = [plan, planned];
  const names = columns.map(({ name }) => name);
  const value = (name: string) => {
    if (isWorkedOut(plan, planned, name)) return name === 'unique_in_vrf' ? 'true' : 'NULL';
    return part === 'state' && table.own.includes(name)
      ? `CASE WHEN d.change = 'changed' THEN o.${quoted(name)} ELSE s.${quoted(name)} END`
      : `s.${quoted(name)}`;
  };
  const kept =
    part === 'state' && table.own.length > 0
      ? `LEFT JOIN pg_temp.${quoted(`_own_${table.name}`)} AS o ON ${same(table.key, 'o', 'd')}`
      : '';
  // What has happened goes on happening: others may have written the same line meanwhile.
  const twice = part === 'history' ? `ON CONFLICT (${list(table.key)}) DO NOTHING` : '';
  await ask(
    `INSERT INTO ${live(table)} (${list(names)}) SELECT ${names.map(value).join(', ')}
     FROM ${loaded(schema, table)} AS s JOIN ${diffOf(table)} AS d ON ${same(table.key, 's', 'd')} AND d.change <> 'deleted' ${kept} ${twice}`,
  );
}

/**
 * Makes the records what the differences say, inside a transaction that holds the locks. Nothing of it stays when anything fails.
 * Returns what has to follow.
 */
export async function applyDifferences(trx: Knex, plan: RestorePlan): Promise<Followed> {
  const ask = askIn(trx);
  const sizes = new Map<string, number>();
  for (const { table } of plan.tables) {
    const [row] = await ask<{ rows: number }>(`SELECT count(*) AS rows FROM ${diffOf(table)}`);
    sizes.set(table.name, row?.rows ?? 0);
  }
  const touched = plan.tables.filter(({ table }) => (sizes.get(table.name) ?? 0) > 0);
  await ask(`SET LOCAL maintenance_work_mem = '256MB'`);
  const lifted: Definition[] = [];
  for (const planned of touched) {
    for (const name of await idle(ask, plan, planned)) {
      await ask(`ALTER TABLE ${live(planned.table)} DISABLE TRIGGER ${quoted(name)}`);
      lifted.push({
        drop: '',
        create: `ALTER TABLE ${live(planned.table)} ENABLE TRIGGER ${quoted(name)}`,
      });
    }
    // Checks of other tables, which stay on, look into these by their indexes.
    if (
      (sizes.get(planned.table.name) ?? 0) < BULK_ROWS ||
      planned.part === 'referred' ||
      plan.extent.tenantId !== null
    )
      continue;
    for (const definition of await weights(ask, planned)) {
      await ask(definition.drop);
      lifted.push(definition);
    }
  }
  await ask('SET CONSTRAINTS ALL DEFERRED');
  const followed = await settleAfter(ask, plan, async () => {
    for (const planned of touched.toReversed())
      if (planned.part === 'state') await takeOut(ask, planned);
    for (const planned of touched) await putIn(ask, plan, planned);
  });
  await ask('SET CONSTRAINTS ALL IMMEDIATE');
  // Indexes before the references that are checked with them.
  for (const { create } of lifted.toReversed()) await ask(create);
  return followed;
}
