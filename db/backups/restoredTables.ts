import { quoteIdentifier, type RunQuery } from './catalog.ts';
import { findPlanned, type PlannedTable, type RestorePlan } from './restorePlan.ts';
import { columnsEqual, diffTable, liveTable, runAll, stagedTable } from './sql.ts';
import type { BackedUpTable } from './tables.ts';

/** True when the rows that a restore writes are not simply those of the archive. */
export const isGuarded = (
  { intoEmptyDatabase }: Pick<RestorePlan, 'intoEmptyDatabase'>,
  { guarded }: BackedUpTable,
): boolean => !intoEmptyDatabase && Object.keys(guarded).length > 0;

/** The rows that a restore writes. Those of guarded tables are from `createRestoredTables`. */
export const restoredTable = (
  plan: Pick<RestorePlan, 'schema' | 'intoEmptyDatabase'>,
  table: BackedUpTable,
): string =>
  isGuarded(plan, table)
    ? `pg_temp.${quoteIdentifier(`_restored_${table.name}`)}`
    : stagedTable(plan.schema, table);

/**
 * Computes the rows that a restore writes into guarded tables, in temporary tables of the transaction:
 * a restore revives no account and no credential. The archive and the current rows stay as they are, so
 * that another transaction computes them again.
 */
export async function createRestoredTables(query: RunQuery, plan: RestorePlan): Promise<void> {
  const guarded = plan.tables.filter(({ table }) => isGuarded(plan, table));
  await runAll(
    query,
    guarded.map((planned) => restoredSql(plan, planned)),
  );
}

function restoredSql(plan: RestorePlan, { table, columns }: PlannedTable): string {
  const staged = stagedTable(plan.schema, table);
  const values = columns.map(({ name }) => {
    const column = quoteIdentifier(name);
    const value = table.guarded[name]?.replaceAll(':backup', staged) ?? `s.${column}`;
    return `${value} AS ${column}`;
  });
  return `CREATE TEMP TABLE ${quoteIdentifier(`_restored_${table.name}`)} ON COMMIT DROP AS
    SELECT ${values.join(', ')} FROM ${staged} AS s
      LEFT JOIN ${liveTable(table)} AS l ON ${columnsEqual(table.key, 's', 'l')}`;
}

/** The number of rows of a table that a restore does not enable, although the backup has them enabled. */
export type NotEnabled = { table: string; rows: number };

/** What the backup has enabled in a row `s`, and the row `r` that a restore writes has not. */
const IS_NOT_ENABLED = {
  providers: 's.enabled AND NOT r.enabled',
  users: 's.enabled AND NOT r.enabled',
  webhooks: 's.enabled AND NOT r.enabled',
  schedules: 's.enabled AND NOT r.enabled',
  secrets: 'cardinality(s.pools) > cardinality(r.pools)',
} as const;

/**
 * Accounts, providers, webhooks, schedules and tokens that a restore leaves disabled, and secrets that it
 * leaves without a pool. Requires `findDifferences`.
 */
export async function countNotEnabled(query: RunQuery, plan: RestorePlan): Promise<NotEnabled[]> {
  const found: NotEnabled[] = [];
  for (const [name, isNotEnabled] of Object.entries(IS_NOT_ENABLED)) {
    const planned = findPlanned(plan, name);
    if (!planned || !isGuarded(plan, planned.table)) continue;
    const { table, role } = planned;
    const isAdded = `EXISTS (SELECT FROM ${diffTable(table)} AS d WHERE d.id = s.id)`;
    found.push({
      table: name,
      rows: await count(
        query,
        `${stagedTable(plan.schema, table)} AS s JOIN ${restoredTable(plan, table)} AS r ON r.id = s.id
         WHERE ${isNotEnabled} AND ${role === 'state' ? 'true' : isAdded}`,
      ),
    });
  }
  const tokens = findPlanned(plan, 'tokens');
  if (tokens && !plan.intoEmptyDatabase)
    found.push({
      table: 'tokens',
      rows: await count(
        query,
        `${diffTable(tokens.table)} AS d JOIN ${stagedTable(plan.schema, tokens.table)} AS s ON s.id = d.id
         WHERE s.disabled_at IS NULL AND s.revoked_at IS NULL AND s.expires_at > now()`,
      ),
    });
  return found.filter(({ rows }) => rows > 0);
}

async function count(query: RunQuery, from: string): Promise<number> {
  const [row] = await query<{ rows: number }>(`SELECT count(*) AS rows FROM ${from}`);
  return row?.rows ?? 0;
}
