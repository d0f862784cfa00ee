import { assertDefined } from '../../domain/shared/assert.ts';
import { lockAccess } from '../access/access.ts';
import { lockUntilCommit } from '../core/advisoryLocks.ts';
import { isBusy } from '../core/constraints.ts';
import { SHOWN_NOW } from '../core/databaseTime.ts';
import type { Knex } from '../core/knex.ts';
import { limitPauses, MAX_IDLE_MS } from '../core/lostClients.ts';
import { quoteIdentifier, type RunQuery } from './catalog.ts';
import { foreignKeysOf, lockLiveTables, type Definition } from './newTables.ts';
import {
  deleteSessions,
  releaseChildren,
  repairAfterRestore,
  satisfyConstraints,
  SCOPE_TABLES,
  type RestoreEffects,
} from './repairAfterRestore.ts';
import {
  findPlanned,
  isAdvanced,
  isDerived,
  mayChangeRights,
  type PlannedTable,
  type RestorePlan,
} from './restorePlan.ts';
import {
  auditRestoredRecords,
  includeFollowers,
  keepFollowed,
  keepReplacedRecords,
  type RestoreAuthor,
} from './restoredRecords.ts';
import { restoredTable } from './restoredTables.ts';
import {
  columnList,
  columnsEqual,
  countDiffs,
  diffTable,
  liveTable,
  queryIn,
  runAll,
} from './sql.ts';
import type { BackedUpTable } from './tables.ts';

/**
 * From this number of changed rows on, indexes and foreign keys of a table are dropped and created
 * again, which is faster than updating them row by row.
 */
const BULK_ROWS = 50_000;

/**
 * How long a bulk restore waits for the readers of all its large tables before it keeps the indexes. It is
 * shorter than `deadlock_timeout`, so that PostgreSQL never ends the transaction of a reader instead.
 */
const INDEX_LOCK_TIMEOUT_MS = 500;

/**
 * Blocks writers, but not readers, of the tables that a restore replaces. Waits for transactions
 * that have written already; later writers wait for the end of this one. Takes all that the restore
 * will need, in the order of everyone else: changes of permissions lock `access_state` first
 * (`lockAccess`), and the event relay locks `event_head` before it reads the webhooks. Error: SQLSTATE 55P03 or
 * 57014 when waiting takes longer than `timeoutMs`, here or for any later lock of the transaction. If the
 * process stops, the locks end with the transaction, which waits at most `idleMs` for its next statement.
 */
export async function lockForRestore(
  trx: Knex,
  plan: RestorePlan,
  timeoutMs: number,
  idleMs = MAX_IDLE_MS,
): Promise<void> {
  await trx.raw(
    `SET LOCAL statement_timeout = ${Math.trunc(timeoutMs)};
     SET LOCAL lock_timeout = ${Math.trunc(timeoutMs)};
     ${limitPauses(idleMs)}`,
  );
  await lockUntilCommit(trx, 'restore');
  if (mayChangeRights(plan)) await lockAccess(trx);
  const replaced = plan.tables.filter(({ role }) => role === 'state');
  const names = replaced.map(({ table }) => liveTable(table));
  await trx.raw('SELECT FROM event_head FOR UPDATE');
  if (names.length > 0) await trx.raw(`LOCK TABLE ${names.join(', ')} IN EXCLUSIVE MODE`);
  await trx.raw('SET LOCAL statement_timeout = 0');
}

type ApplyOptions = {
  /** Tables that have the rows of the backup already. */
  replaced?: ReadonlySet<string>;
  /** With it, each record that changes has an audit entry, but for history. */
  author?: RestoreAuthor;
  /** No statement starts after it is aborted. */
  signal?: AbortSignal | undefined;
  /** See `BULK_ROWS`. */
  bulkRows?: number | undefined;
};

/** `followers`: how many records have changed beside the differences, because they follow others, by tenant. */
export type AppliedRestore = RestoreEffects & { followers: ReadonlyMap<string, number> };

/**
 * Writes the differences that `findDifferences` found. The transaction must hold the locks of
 * `lockForRestore`; it rolls back everything if a statement fails. Returns the side effects.
 */
export async function applyDifferences(
  trx: Knex.Transaction,
  plan: RestorePlan,
  { replaced = new Set(), author, signal, bulkRows = BULK_ROWS }: ApplyOptions = {},
): Promise<AppliedRestore> {
  const query = queryIn(trx, signal);
  const differing = await findChangedTables(query, plan);
  const changed = differing.filter(({ planned }) => !replaced.has(planned.table.name));
  await prepareToWrite(query, plan);
  await query(`SET LOCAL maintenance_work_mem = '256MB'`);
  await lockRepairedTables(query, plan, changed);
  const undo: string[] = [];
  for (const { planned } of changed) undo.push(...(await disableTriggers(query, plan, planned)));
  // Foreign keys of tables outside the restore need the indexes of partly restored tables.
  const large = changed.filter(
    ({ planned, rows }) =>
      rows >= bulkRows && planned.role !== 'referenced' && plan.scope.tenantId === null,
  );
  if (large.length > 0) undo.push(...(await dropIndexesAndForeignKeys(trx, query, large)));
  const names = new Set(differing.map(({ planned }) => planned.table.name));
  const entryTime = author && (await keepReplacedRecords(query, changed, author));
  const following = author ? await keepFollowed(query, plan, names) : [];
  const effects = await repairAfterRestore(query, plan, names, () =>
    writeRows(query, plan, changed),
  );
  const followers = await includeFollowers(query, following);
  if (author && entryTime)
    await auditRestoredRecords(query, await findChangedTables(query, plan), author, entryTime);
  await query('SET CONSTRAINTS ALL IMMEDIATE');
  // In reverse order, indexes are created before the foreign keys that are checked with them.
  for (const statement of undo.toReversed()) await query(statement);
  return { ...effects, followers };
}

/**
 * Tables that a dry run does not write: any change of them locks `access_state`, for which everyone waits
 * who changes permissions. A restore replaces all their rows, and no other table refers to them.
 */
const UNTRIED_TABLES: ReadonlySet<string> = new Set(['roles', 'grants']);

/**
 * Writes the differences in a transaction that must roll back, to find the constraints that refuse
 * them. It locks no table, only rows, and none that work for other tenants waits for: the triggers stay
 * enabled, and of what follows a restore it does only what constraints depend on. No statement starts after
 * `signal` is aborted.
 */
export async function tryDifferences(
  trx: Knex,
  plan: RestorePlan,
  signal: AbortSignal,
): Promise<void> {
  const query = queryIn(trx, signal);
  await keepWebhooks(query, plan);
  const changed = await findChangedTables(query, plan);
  await prepareToWrite(query, plan);
  await deleteSessions(query, plan);
  const written = changed.filter(
    ({ planned: { table } }) =>
      !UNTRIED_TABLES.has(table.name) &&
      // A tenant that is deleted and inserted would lose its quotas: a trigger deletes them.
      (plan.scope.tenantId === null || table.name !== 'tenants'),
  );
  await writeRows(query, plan, written);
  await satisfyConstraints(query, plan);
  await releaseChildren(query, plan);
  await tryConstraints(query);
}

/**
 * Removes webhooks that exist from the differences of a dry run: the relay of events and the queue of
 * deliveries lock webhooks of all tenants in turn, and would wait for the rows. Only the quota depends on
 * them, which counts what the restore would do.
 */
async function keepWebhooks(query: RunQuery, plan: RestorePlan): Promise<void> {
  const planned = findPlanned(plan, 'webhooks');
  if (!planned) return;
  const { table } = planned;
  const diff = diffTable(table);
  await query(
    `INSERT INTO public.quota_usage (tenant_id, quota, change)
     SELECT l.tenant_id, 'webhooks', count(*) FILTER (WHERE d.change = 'changed' AND s.deleted_at IS NULL)
       - count(*) FILTER (WHERE l.deleted_at IS NULL)
     FROM ${diff} AS d JOIN ${liveTable(table)} AS l ON l.id = d.id
       LEFT JOIN ${restoredTable(plan, table)} AS s ON s.id = d.id
     WHERE d.change <> 'created' AND l.tenant_id <> 'platform' GROUP BY l.tenant_id`,
  );
  await query(`DELETE FROM ${diff} WHERE change <> 'created'`);
}

/** Constraint triggers that take the lock `trees`, for which writers of all tenants wait. */
const TREE_CHECKS = ['regions_tree', 'locations_tree'];

/**
 * Checks the deferred constraints of a dry run, but not the foreign keys of tables that it does not write.
 * Those of trees come last: the server releases their lock before it answers.
 */
async function tryConstraints(query: RunQuery): Promise<void> {
  const untried = [...UNTRIED_TABLES].map((name) => `'public.${name}'`);
  const trees = TREE_CHECKS.map((name) => `'${name}'`);
  const [found] = await query<{ names: string }>(
    `SELECT string_agg(DISTINCT format('public.%I', conname), ', ') AS names FROM pg_constraint
     WHERE condeferrable AND conparentid = 0 AND connamespace = 'public'::regnamespace
       AND conname NOT IN (${trees.join(', ')})
       AND conrelid <> ALL (ARRAY[${untried.join(', ')}]::regclass[])`,
  );
  await query(`SET CONSTRAINTS ${assertDefined(found, 'constraints').names} IMMEDIATE`);
  await runAll(query, [
    'SAVEPOINT trees',
    `SET CONSTRAINTS ${TREE_CHECKS.map((name) => `public.${name}`).join(', ')} IMMEDIATE`,
    'ROLLBACK TO SAVEPOINT trees',
  ]);
}

async function prepareToWrite(query: RunQuery, plan: RestorePlan): Promise<void> {
  // What the platform restores was allowed when the backup was made.
  if (plan.scope.tenantId === null) await query("SET LOCAL holdfast.quotas = 'off'");
  // For the triggers of records that are created now: these were created before.
  await query("SET LOCAL holdfast.restoring = 'on'");
  await query('SET CONSTRAINTS ALL DEFERRED');
}

async function writeRows(
  query: RunQuery,
  plan: RestorePlan,
  changed: readonly ChangedTable[],
): Promise<void> {
  for (const { planned } of changed.toReversed())
    if (planned.role === 'state') await deleteRows(query, plan, planned);
  for (const { planned } of changed) await insertRows(query, plan, planned);
}

/**
 * Locks the tables whose derived columns are computed again because records of the inventory are added
 * by reference: the plan does not replace these tables, so `lockForRestore` has not locked them.
 */
async function lockRepairedTables(
  query: RunQuery,
  { tables }: RestorePlan,
  changed: readonly ChangedTable[],
): Promise<void> {
  const isRepaired = ({ table, role }: PlannedTable) =>
    role === 'referenced' && SCOPE_TABLES.includes(table.name);
  if (!changed.some(({ planned }) => isRepaired(planned))) return;
  const names = tables.filter(isRepaired).map(({ table }) => liveTable(table));
  await query(`LOCK TABLE ${names.join(', ')} IN EXCLUSIVE MODE`);
}

type ChangedTable = { planned: PlannedTable; rows: number };

async function findChangedTables(
  query: RunQuery,
  { tables }: RestorePlan,
): Promise<ChangedTable[]> {
  const counts = await countDiffs(query, tables);
  return tables
    .map((planned) => ({ planned, rows: counts.get(planned.table.name) ?? 0 }))
    .filter(({ rows }) => rows > 0);
}

/** True when the restore replaces all rows of a table. */
const isFullReplacement = ({ scope }: RestorePlan, { role }: PlannedTable): boolean =>
  role === 'state' && scope.tenantId === null;

/**
 * Disables the triggers of a table that must not run during the restore. Returns the statements
 * that enable them. Rows of a fully replaced table are correct as they are, so that no trigger
 * runs. Otherwise triggers that compute a row from other rows (BEFORE) and those that check it
 * (deferrable) do run. Triggers that protect the audit log and what is held, and those that count for quotas, always run.
 */
async function disableTriggers(
  query: RunQuery,
  plan: RestorePlan,
  planned: PlannedTable,
): Promise<string[]> {
  // Bit 1 of tgtype marks a BEFORE trigger (TRIGGER_TYPE_BEFORE in pg_trigger.h).
  const condition = isFullReplacement(plan, planned)
    ? 'true'
    : 'NOT tgdeferrable AND tgtype & 2 = 0';
  const table = liveTable(planned.table);
  const triggers = await query<{ name: string }>(
    `SELECT tgname::text AS name FROM pg_trigger
     WHERE tgrelid = '${table}'::regclass AND NOT tgisinternal
       AND tgname NOT LIKE 'audit\\_%' AND tgname NOT LIKE 'quota\\_%'
       AND tgname NOT LIKE 'hold\\_%'
       AND ${condition}`,
  );
  if (triggers.length === 0) return [];
  const each = (action: 'DISABLE' | 'ENABLE') =>
    triggers.map(({ name }) => `${action} TRIGGER ${quoteIdentifier(name)}`).join(', ');
  await query(`ALTER TABLE ${table} ${each('DISABLE')}`);
  return [`ALTER TABLE ${table} ${each('ENABLE')}`];
}

/**
 * Drops the foreign keys of and to tables and their indexes that no constraint needs. Returns the
 * statements that create them again. The locks keep readers out as well, and while they are awaited new
 * readers queue behind them: all are taken together, or none. If they cannot be had soon, because a backup
 * or a dump reads one of the tables, everything stays and the rows are written more slowly.
 */
async function dropIndexesAndForeignKeys(
  trx: Knex.Transaction,
  query: RunQuery,
  changed: readonly ChangedTable[],
): Promise<string[]> {
  const tables = changed.map(({ planned }) => planned.table);
  const live = tables.map(liveTable);
  const foreignKeys = await foreignKeysOf(query, ...live);
  const locked = [...tables.map(({ name }) => name), ...foreignKeys.flatMap((key) => key.tables)];
  try {
    // A savepoint, whose rollback releases the locks.
    await trx.transaction((nested) =>
      lockLiveTables(nested, new Set(locked), INDEX_LOCK_TIMEOUT_MS),
    );
  } catch (error) {
    if (isBusy(error)) return [];
    throw error;
  }
  const indexes = await query<Definition>(
    `SELECT format('DROP INDEX %s', indexrelid::regclass) AS drop,
       pg_get_indexdef(indexrelid) AS create
     FROM pg_index AS i
     WHERE indrelid IN (${live.map((name) => `'${name}'::regclass`).join(', ')})
       AND NOT indisprimary
       AND NOT EXISTS (SELECT FROM pg_constraint WHERE conindid = i.indexrelid)`,
  );
  const definitions = [...foreignKeys, ...indexes];
  for (const { drop } of definitions) await query(drop);
  return definitions.map(({ create }) => create);
}

const preservedTable = (name: string): string => quoteIdentifier(`_preserved_${name}`);

/**
 * Deletes the rows of a table that the restore deletes or changes; all rows that change are deleted
 * before any is inserted, so that they cannot violate unique constraints of each other. Keeps
 * the preserved columns of changed rows in a temporary table for `insertRows`.
 */
async function deleteRows(
  query: RunQuery,
  plan: RestorePlan,
  planned: PlannedTable,
): Promise<void> {
  const { table } = planned;
  const live = liveTable(table);
  const diff = diffTable(table);
  const isSameRow = columnsEqual(table.key, 't', 'd');
  await query(
    `CREATE TEMP TABLE ${preservedTable(table.name)} ON COMMIT DROP AS
     SELECT ${columnList([...table.key, ...keptColumns(plan, planned)], 't')}
     FROM ${live} AS t JOIN ${diff} AS d ON ${isSameRow} WHERE d.change = 'changed'`,
  );
  const condition = table.tombstone === null ? `d.change <> 'created'` : `d.change = 'changed'`;
  await query(`DELETE FROM ${live} AS t USING ${diff} AS d WHERE ${condition} AND ${isSameRow}`);
  if (table.tombstone === null) return;
  await query(
    `UPDATE ${live} AS t SET ${table.tombstone.replaceAll(':now', SHOWN_NOW)}
     FROM ${diff} AS d WHERE d.change = 'deleted' AND ${isSameRow}`,
  );
}

/** Derived columns that cannot be null: a trigger copies them from the VRF of the row. */
const DERIVED_FLAGS: ReadonlySet<string> = new Set(['unique_in_vrf', 'in_shared_table']);

/** The columns whose current values a restore needs when it inserts the changed rows of a table. */
const keptColumns = (plan: RestorePlan, planned: PlannedTable): string[] =>
  planned.role === 'state'
    ? planned.columns
        .map(({ name }) => name)
        .filter((name) => planned.table.preserved.includes(name) || isAdvanced(plan, planned, name))
    : [];

/**
 * SQL: the version of a restored row. The last one of a record that was deleted since the backup is not
 * known: it has changed less often than this.
 */
const newVersion = (hasPresent: boolean): string => {
  const sinceBackup = `s.version + 1000
    + greatest(0, ceil(extract(epoch FROM ${SHOWN_NOW} - s.updated_at)))::integer`;
  return hasPresent
    ? `CASE WHEN d.change = 'changed' THEN greatest(o.version, s.version) + 1 ELSE ${sinceBackup} END`
    : sinceBackup;
};

/** Inserts the rows of the backup that the restore creates or changes. */
async function insertRows(
  query: RunQuery,
  plan: RestorePlan,
  planned: PlannedTable,
): Promise<void> {
  const { table, columns, role } = planned;
  const names = columns.map(({ name }) => name);
  const valueOf = (name: string) => {
    const column = quoteIdentifier(name);
    // A trigger or `repairAfterRestore` sets derived columns afterwards.
    if (isDerived(plan, planned, name)) return DERIVED_FLAGS.has(name) ? 'true' : 'NULL';
    if (isAdvanced(plan, planned, name)) return newVersion(role === 'state');
    if (table.inserted[name] !== undefined) return table.inserted[name];
    return role === 'state' && table.preserved.includes(name)
      ? `CASE WHEN d.change = 'changed' THEN o.${column} ELSE s.${column} END`
      : `s.${column}`;
  };
  const joinPreserved =
    keptColumns(plan, planned).length > 0
      ? `LEFT JOIN pg_temp.${preservedTable(table.name)} AS o
           ON ${columnsEqual(table.key, 'o', 'd')}`
      : '';
  // Tables with history are not locked: another transaction may have inserted the same row.
  const onConflict = role === 'history' ? `ON CONFLICT ${conflictTarget(table)} DO NOTHING` : '';
  if (table.sameAs !== null) await supersedeRows(query, plan, planned);
  await query(
    `INSERT INTO ${liveTable(table)} (${columnList(names)})
     SELECT ${names.map(valueOf).join(', ')}
     FROM ${restoredTable(plan, table)} AS s
       JOIN ${diffTable(table)} AS d
         ON ${columnsEqual(table.key, 's', 'd')} AND d.change <> 'deleted'
       ${joinPreserved}
     ${onConflict}`,
  );
}

/** What has the same key is the same row; where rows can be the same under different keys, any unique index counts. */
const conflictTarget = ({ key, sameAs }: BackedUpTable): string =>
  sameAs === null ? `(${columnList(key)})` : '';

/** Updates the current rows that those of the backup supersede. They keep their keys. */
async function supersedeRows(
  query: RunQuery,
  plan: RestorePlan,
  { table, columns }: PlannedTable,
): Promise<void> {
  const names = columns.map(({ name }) => name).filter((name) => !table.key.includes(name));
  await query(
    `UPDATE ${liveTable(table)} AS l SET (${columnList(names)}) = ROW(${columnList(names, 's')})
     FROM ${restoredTable(plan, table)} AS s
       JOIN ${diffTable(table)} AS d ON ${columnsEqual(table.key, 's', 'd')}
     WHERE ${table.sameAs} AND (${table.supersedes})`,
  );
}
