import type { ChangeKind } from '../../domain/backups/backups.ts';
import { quoteIdentifier, type RunQuery } from './catalog.ts';
import { countPurged } from './purged.ts';
import { comparedColumns, type PlannedTable, type RestorePlan } from './restorePlan.ts';
import { restoredTable } from './restoredTables.ts';
import {
  columnList,
  columnsEqual,
  comparableColumn,
  countDiffs,
  diffTable,
  liveTable,
} from './sql.ts';
import { readRowCounts } from './staging.ts';

type DiffCounts = {
  name: string;
  inArchive: number;
  created: number;
  changed: number;
  deleted: number;
  purged: number;
};

type CountRow = Pick<DiffCounts, 'created' | 'changed' | 'deleted'> & { hash: string };

/** What `countSql` returns for a table without differences. */
const NO_DIFFERENCES: CountRow = { created: 0, changed: 0, deleted: 0, hash: ':' };

/**
 * The number of records that a restore would change in each table of the plan, and a fingerprint of
 * all changes: it differs when another record would change, or one would change to other values.
 * Requires `findDifferences`.
 */
export async function countDifferences(
  query: RunQuery,
  plan: RestorePlan,
): Promise<{ counts: DiffCounts[]; fingerprint: string }> {
  const counts: DiffCounts[] = [];
  const hashes: string[] = [];
  const inArchive = await readRowCounts(query, plan.schema);
  const differences = await countDiffs(query, plan.tables);
  for (const planned of plan.tables) {
    const { name } = planned.table;
    const { hash, ...count } =
      differences.get(name) === 0 ? NO_DIFFERENCES : await countChanges(query, plan, planned);
    const purged = await countPurged(query, plan, planned);
    counts.push({ name, inArchive: inArchive.get(name) ?? 0, ...count, purged });
    hashes.push(`${name} ${count.created} ${count.changed} ${count.deleted} ${hash}`);
  }
  return { counts, fingerprint: hashes.join('\n') };
}

async function countChanges(
  query: RunQuery,
  plan: RestorePlan,
  planned: PlannedTable,
): Promise<CountRow> {
  const [row] = await query<CountRow>(countSql(plan, planned));
  if (!row) throw new Error(`No counts for the table ${planned.table.name}`);
  return row;
}

function countSql(plan: RestorePlan, planned: PlannedTable): string {
  const { table } = planned;
  const names = comparedColumns(plan, planned).map(({ name }) => name);
  const text = `concat_ws('|', d.change, ROW(${columnList(table.key, 'd')})::text,
    CASE WHEN d.change <> 'deleted' THEN ROW(${columnList(names, 's')})::text END,
    CASE WHEN d.change <> 'created' THEN ROW(${columnList(names, 'l')})::text END)`;
  // The sum of two hashes of each row does not depend on the order of the rows.
  const sumOf = (seed: number) => `sum(hashtextextended(${text}, ${seed})::numeric)`;
  const countOf = (change: ChangeKind) => `count(*) FILTER (WHERE d.change = '${change}')`;
  return `SELECT
      ${countOf('created')} AS created, ${countOf('changed')} AS changed,
      ${countOf('deleted')} AS deleted, concat(${sumOf(0)}, ':', ${sumOf(1)}) AS hash
    FROM ${diffTable(table)} AS d ${bothSides(plan, planned)}`;
}

/** Joins the row of the backup (`s`) and the current row (`l`) of a difference (`d`). */
const bothSides = (plan: RestorePlan, { table }: PlannedTable): string =>
  `LEFT JOIN ${restoredTable(plan, table)} AS s ON ${columnsEqual(table.key, 's', 'd')}
   LEFT JOIN ${liveTable(table)} AS l ON ${columnsEqual(table.key, 'l', 'd')}`;

/**
 * One difference with the values before (`current`) and after the restore (`restored`), as text.
 */
export type DifferenceSample = {
  key: string;
  change: ChangeKind;
  restored: Record<string, string | null>;
  current: Record<string, string | null>;
  /** The hidden columns in which the rows differ. */
  hiddenDiffer: string[] | null;
};

const MAX_VALUE_CHARS = 200;

/**
 * The first `limit` differences of a table by key, with values cut to 200 characters. Values of
 * hidden columns are not read.
 */
export async function sampleDifferences(
  query: RunQuery,
  plan: RestorePlan,
  planned: PlannedTable,
  limit: number,
): Promise<DifferenceSample[]> {
  const { table } = planned;
  const compared = comparedColumns(plan, planned);
  const visible = compared.filter(({ name }) => !table.hidden.includes(name));
  const hidden = compared.filter(({ name }) => table.hidden.includes(name));
  const valuesOf = (alias: string) => {
    const values = visible
      .map(({ name }) => quoteIdentifier(name))
      .map((name) => `left(${alias}.${name}::text, ${MAX_VALUE_CHARS}) AS ${name}`);
    return `(SELECT row_to_json(r) FROM (SELECT ${values.join(', ')}) AS r)`;
  };
  const hiddenDiffer = hidden.map((column) => {
    const [restored, current] = [comparableColumn('s', column), comparableColumn('l', column)];
    return `CASE WHEN ${restored} IS DISTINCT FROM ${current} THEN '${column.name}' END`;
  });
  return query<DifferenceSample>(
    `SELECT concat_ws('/', ${columnList(table.key, 'd')}) AS key, d.change,
       ${valuesOf('s')} AS restored, ${valuesOf('l')} AS current,
       array_remove(ARRAY[${hiddenDiffer.join(', ')}]::text[], NULL) AS "hiddenDiffer"
     FROM (SELECT * FROM ${diffTable(table)} ORDER BY ${columnList(table.key)} LIMIT ${limit}) AS d
       ${bothSides(plan, planned)}
     ORDER BY ${columnList(table.key, 'd')}`,
  );
}
