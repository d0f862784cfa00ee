import type { Knex } from '../core/knex.ts';
import { minIdAt } from '../../platform/ids.ts';
import type { Import } from '../models/Import.ts';
import type { Mutation } from '../../domain/inventory/planning.ts';

/** A row of an imported file. `line` counts from 1. */
export type FileRow = { line: number; mutation: Mutation };
/** The result of a row. `report` has its errors, conflicts and warnings. */
export type RowOutcome = { line: number; outcome: string; recordId: string | null; report: object };

/** Stores rows of a file while it is received. */
export const addRows = async (
  db: Knex,
  importId: string,
  rows: readonly FileRow[],
): Promise<void> =>
  void (await db.raw(
    "INSERT INTO import_rows (import_id, line, mutation) SELECT ?, (r->>'line')::integer, r->'mutation' FROM json_array_elements(?::json) AS r",
    [importId, JSON.stringify(rows)],
  ));

/** Lists the next rows without an outcome, in the order of the file. */
export const nextRows = (db: Knex, importId: string, limit: number): Promise<FileRow[]> =>
  db('import_rows')
    .where({ import_id: importId })
    .whereNull('outcome')
    .orderBy('line')
    .limit(limit)
    .select('line', 'mutation');

/** Stores the outcomes of rows and adds them to the progress and the counts of the import. */
export async function recordOutcomes(
  db: Knex,
  importId: string,
  outcomes: readonly RowOutcome[],
): Promise<void> {
  await db.raw(
    `WITH r AS (SELECT * FROM json_to_recordset(?::json) AS r (line integer, outcome text, "recordId" text, report json)),
      ended AS (UPDATE import_rows AS t SET outcome = r.outcome, record_id = r."recordId", report = r.report FROM r WHERE t.import_id = ? AND t.line = r.line RETURNING r.outcome)
     UPDATE imports SET done = done + (SELECT count(*) FROM ended),
       counts = coalesce((SELECT jsonb_object_agg(outcome, rows) FROM (
         SELECT outcome, sum(rows) AS rows FROM (
           SELECT key AS outcome, value::bigint AS rows FROM jsonb_each_text(imports.counts)
           UNION ALL SELECT outcome, 1 FROM ended) AS each
         GROUP BY outcome) AS summed), '{}')
     WHERE id = ?`,
    [JSON.stringify(outcomes), importId, importId],
  );
}

type Counted = Pick<Import, 'id' | 'done' | 'counts'>;

/** The counts of an import include all its outcomes: a process of an earlier release keeps none. */
const isCounted = ({ done, counts }: Counted): boolean =>
  Object.values(counts).reduce((sum, rows) => sum + rows, 0) === done;

/** The rows of each import by outcome. Those of imports that have no counts are counted. */
export async function countOutcomes(
  db: Knex,
  imports: readonly Counted[],
): Promise<Map<string, Readonly<Record<string, number>>>> {
  const counts = new Map<string, Readonly<Record<string, number>>>(
    imports.filter(isCounted).map((each) => [each.id, each.counts]),
  );
  const uncounted = imports.filter(({ id }) => !counts.has(id)).map(({ id }) => id);
  if (uncounted.length === 0) return counts;
  const rows: { import_id: string; outcome: string; count: string }[] = await db('import_rows')
    .whereIn('import_id', uncounted)
    .whereNotNull('outcome')
    .groupBy('import_id', 'outcome')
    .select('import_id', 'outcome', db.raw('count(*) AS count'));
  for (const { import_id: id, outcome, count } of rows)
    counts.set(id, { ...counts.get(id), [outcome]: Number(count) });
  return counts;
}

/** Copies the rows of an import to a new one, without their outcomes. Returns their number. */
export async function copyRows(db: Knex, fromId: string, toId: string): Promise<number> {
  const { rowCount } = await db.raw<{ rowCount: number }>(
    'INSERT INTO import_rows (import_id, line, mutation) SELECT ?, line, mutation FROM import_rows WHERE import_id = ? ORDER BY line',
    [toId, fromId],
  );
  return rowCount;
}

export type ReportedRow = {
  line: number;
  outcome: string | null;
  record_id: string | null;
  report: object | null;
  mutation: Mutation;
};

export type RowsRequest = {
  outcomes?: readonly string[] | undefined;
  after: number;
  limit: number;
};

/** Lists the rows of an import after a line, optionally with some outcomes. */
export const listRows = (
  db: Knex,
  importId: string,
  { outcomes, after, limit }: RowsRequest,
): Promise<ReportedRow[]> => {
  const query = db('import_rows')
    .where({ import_id: importId })
    .where('line', '>', after)
    .orderBy('line')
    .limit(limit)
    .select('line', 'outcome', 'record_id', 'report', 'mutation');
  if (outcomes !== undefined) void query.whereIn('outcome', [...outcomes]);
  return query;
};

/** Returns those of the ids that exist in a table. */
export const findExistingIds = (
  db: Knex,
  table: string,
  ids: readonly string[],
): Promise<string[]> =>
  db(table)
    .whereIn('id', [...ids])
    .pluck('id');

/**
 * Deletes up to `limit` rows of files older than `before` that were never received completely.
 * Returns the number of deleted rows.
 */
export async function purgeAbandonedImportRows(
  db: Knex,
  before: Date,
  limit: number,
): Promise<number> {
  const { rowCount } = await db.raw<{ rowCount: number }>(
    `DELETE FROM import_rows WHERE (import_id, line) IN (
       SELECT import_id, line FROM import_rows AS r
       WHERE import_id < ? AND NOT EXISTS (SELECT FROM imports WHERE id = r.import_id)
       ORDER BY import_id, line LIMIT ?)`,
    [minIdAt('imp', before), limit],
  );
  return rowCount;
}
