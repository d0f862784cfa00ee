import { quoteIdentifier, type RunQuery } from './catalog.ts';
import { isPurged } from './purged.ts';
import {
  comparedColumns,
  findPlanned,
  type PlannedTable,
  type RestorePlan,
} from './restorePlan.ts';
import { createRestoredTables, restoredTable } from './restoredTables.ts';
import { scopeFilter } from './snapshot.ts';
import {
  columnList,
  columnsEqual,
  comparableColumn,
  countDiffs,
  diffTable,
  liveTable,
  refersTo,
  runAll,
} from './sql.ts';
import type { BackedUpTable } from './tables.ts';

/**
 * Finds what a restore would change: for each table of the plan a temporary table of the
 * transaction with the keys of the rows that differ and `change`: created, changed or deleted. All
 * rows of the tables `replaced` count as created.
 */
export async function findDifferences(
  query: RunQuery,
  plan: RestorePlan,
  replaced: ReadonlySet<string> = new Set(),
): Promise<void> {
  const { tables } = plan;
  await createRestoredTables(query, plan);
  const creations = tables.map((planned) => {
    const { table } = planned;
    const name = quoteIdentifier(`_diff_${table.name}`);
    const rows = replaced.has(table.name)
      ? `SELECT ${columnList(table.key)}, 'created' AS change FROM ${liveTable(table)}`
      : differencesSql(plan, planned);
    return `CREATE TEMP TABLE ${name} ON COMMIT DROP AS ${rows}`;
  });
  await runAll(query, creations);
  const counts = await countDiffs(query, tables);
  const changed = new Set([...counts].filter(([, rows]) => rows > 0).map(([name]) => name));
  await includeReferencedRows(query, plan, changed);
  await includeNamedRecords(query, plan, changed);
  await query(`ANALYZE ${tables.map(({ table }) => diffTable(table)).join(', ')}`);
}

function differencesSql(plan: RestorePlan, planned: PlannedTable): string {
  if (planned.role === 'state') return stateDiffSql(plan, planned);
  const missing = missingRowsSql(plan, planned);
  // Referenced tables start without differences; rows are added when something refers to them.
  return planned.role === 'history' ? missing : `${missing} AND false`;
}

/** All rows that differ between the backup (`s`) and the current table (`l`). */
function stateDiffSql(plan: RestorePlan, planned: PlannedTable): string {
  const { table } = planned;
  const [first] = table.key;
  const rowOf = (alias: string) => {
    const columns = comparedColumns(plan, planned);
    return `ROW(${columns.map((column) => comparableColumn(alias, column)).join(', ')})`;
  };
  const key = table.key
    .map((name) => quoteIdentifier(name))
    .map((name) => `coalesce(s.${name}, l.${name}) AS ${name}`);
  const inBackup = `s.${quoteIdentifier(first)} IS NOT NULL`;
  const isLive = `l.${quoteIdentifier(first)} IS NOT NULL`;
  // A row that is not in the backup and already marked as deleted does not differ.
  const counts = table.tombstone === null ? 'true' : `(${inBackup} OR l.deleted_at IS NULL)`;
  const isOfPlatform = plan.scope.tenantId !== null && table.createdByPlatform;
  const exists = isOfPlatform ? `${inBackup} AND ${isLive}` : 'true';
  return `SELECT ${key.join(', ')},
      CASE WHEN NOT ${isLive} THEN 'created' WHEN NOT ${inBackup} THEN 'deleted' ELSE 'changed' END
        AS change
    FROM ${restoredTable(plan, table)} AS s
      FULL JOIN (
        SELECT * FROM ${liveTable(table)} AS t WHERE ${scopeFilter(table, plan.scope)}) AS l
        ON ${columnsEqual(table.key, 's', 'l')}
    WHERE ${counts} AND ${exists}
      AND (NOT ${isLive} OR NOT ${inBackup} OR ${rowOf('s')} IS DISTINCT FROM ${rowOf('l')})`;
}

/** The rows of the backup that are missing in the current table, and were not removed on purpose. */
const missingRowsSql = (plan: RestorePlan, { table }: PlannedTable): string =>
  `SELECT ${columnList(table.key, 's')}, 'created' AS change FROM ${restoredTable(plan, table)} AS s
   WHERE NOT EXISTS (
     SELECT FROM ${liveTable(table)} AS l WHERE ${columnsEqual(table.key, 's', 'l')})
   AND NOT ${isPurged(plan, table.name, 's')} AND NOT ${table.removedSince ?? 'false'}
   AND NOT (${table.unfinished ?? 'false'}) ${isKnownOtherwise(plan, table)
     .map((condition) => `AND NOT (${condition})`)
     .join(' ')}`;

/** SQL: a row is about the same as a current one with another key, or belongs to such a row. */
function isKnownOtherwise(plan: RestorePlan, table: BackedUpTable): string[] {
  const own = `EXISTS (
    SELECT FROM ${liveTable(table)} AS l WHERE ${table.sameAs} AND NOT (${table.supersedes}))`;
  const viaParents = plan.references.flatMap((reference) => {
    const parent = findPlanned(plan, reference.parent)?.table;
    if (reference.child !== table.name || !parent?.sameAs) return [];
    const columns = (side: 'child' | 'parent') =>
      columnList(
        reference.columns.map((pair) => pair[side]),
        's',
      );
    return `((${columns('child')}) IN (
      SELECT ${columns('parent')} FROM ${restoredTable(plan, parent)} AS s
        JOIN ${liveTable(parent)} AS l ON ${parent.sameAs}
      WHERE NOT (${columnsEqual(parent.key, 'l', 's')}))) IS TRUE`;
  });
  return table.sameAs === null ? viaParents : [own, ...viaParents];
}

/**
 * Adds missing rows that restored rows refer to, and missing rows that those refer to, and so on.
 * `changed`: the tables with differences; those that get the first ones are added to it.
 */
async function includeReferencedRows(
  query: RunQuery,
  plan: RestorePlan,
  changed: Set<string>,
): Promise<void> {
  const byName = new Map(plan.tables.map((planned) => [planned.table.name, planned]));
  const links = plan.references.flatMap((reference) => {
    const child = byName.get(reference.child);
    const parent = byName.get(reference.parent);
    if (!child || parent?.role !== 'referenced') return [];
    return [{ reference, from: child.table, to: parent.table }];
  });
  let hasAdded = links.length > 0;
  while (hasAdded) {
    hasAdded = false;
    for (const { reference, from, to } of links) {
      if (!changed.has(from.name)) continue;
      const added = await query(
        `INSERT INTO ${diffTable(to)} SELECT DISTINCT ${columnList(to.key, 'p')}, 'created'
         FROM ${restoredRows(plan, from)}
           JOIN ${restoredTable(plan, to)} AS p ON ${refersTo(reference, 'c', 'p')}
         WHERE ${isMissing(to, to.key)} AND NOT ${isPurged(plan, to.name, 'p')} RETURNING 1`,
      );
      if (added.length === 0) continue;
      changed.add(to.name);
      hasAdded = true;
    }
  }
}

/**
 * Adds missing tags and definitions of custom fields that restored rows use. Inventory records
 * name them without a foreign key.
 */
async function includeNamedRecords(
  query: RunQuery,
  plan: RestorePlan,
  changed: ReadonlySet<string>,
): Promise<void> {
  const referenced = (name: string) =>
    plan.tables.find(({ table, role }) => table.name === name && role === 'referenced')?.table;
  const tags = referenced('tags');
  const fields = referenced('custom_fields');
  for (const { table, columns } of plan.tables) {
    if (!changed.has(table.name)) continue;
    const has = (name: string) =>
      table.section === 'inventory' && columns.some((column) => column.name === name);
    const add = async (to: BackedUpTable, isUsed: string) =>
      query(
        `INSERT INTO ${diffTable(to)} SELECT p.id, 'created'
         FROM ${restoredTable(plan, to)} AS p
         WHERE EXISTS (SELECT FROM ${restoredRows(plan, table)} WHERE ${isUsed})
           AND ${isMissing(to, ['id'])}`,
      );
    if (tags && has('tags')) await add(tags, 'p.id = ANY (c.tags)');
    if (fields && has('custom_fields')) {
      const resource = table.name.replaceAll('_', '-');
      await add(fields, `p.resource = '${resource}' AND jsonb_exists(c.custom_fields, p.name)`);
    }
  }
}

/** The rows of the backup (`c`) that the restore writes. */
const restoredRows = (plan: RestorePlan, table: BackedUpTable): string =>
  `${restoredTable(plan, table)} AS c JOIN ${diffTable(table)} AS d
     ON ${columnsEqual(table.key, 'c', 'd')} AND d.change <> 'deleted'`;

/** True when the row `p` of the backup is neither in the current table nor already added. */
const isMissing = (table: BackedUpTable, key: readonly string[]): string =>
  `NOT EXISTS (SELECT FROM ${liveTable(table)} AS l WHERE ${columnsEqual(key, 'p', 'l')})
   AND NOT EXISTS (SELECT FROM ${diffTable(table)} AS x WHERE ${columnsEqual(key, 'p', 'x')})`;
