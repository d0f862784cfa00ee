import { storableJson } from '../core/storableJson.ts';
import { boundedRows, takePage } from '../core/boundedRows.ts';
import type { Knex } from '../core/knex.ts';
import { chunked } from '../../platform/chunks.ts';
import { minIdAt } from '../../platform/ids.ts';
import type { Import } from '../models/Import.ts';
import type { Mutation } from '../../domain/inventory/planning.ts';

/** A row of an imported file. `line` counts from 1. */
export type FileRow = { line: number; mutation: FileMutation };

/** `isOperationGiven`: the file says what to do, so that an update is no create of what does not exist. */
type FileMutation = Mutation & { isOperationGiven?: true };
/** The result of a row. `report` has its errors, conflicts and warnings. */
export type RowOutcome = { line: number; outcome: string; recordId: string | null; report: object };

/** The rows of a file that are held together: a row may need many times the memory of its text. */
const HELD_BYTES = 1_048_576;
/** The number of rows that one statement stores. */
const STORED_ROWS = 1_000;

/** Groups what is stored: arrays as JSON text, which needs less memory than its values. */
async function* storedTogether<T>(values: AsyncIterable<T> | Iterable<T>): AsyncGenerator<string> {
  const bound = { maxCount: STORED_ROWS, maxBytes: HELD_BYTES };
  for await (const texts of chunked(jsonOf(values), bound, (text) => Buffer.byteLength(text)))
    yield `[${texts.join(',')}]`;
}

async function* jsonOf<T>(values: AsyncIterable<T> | Iterable<T>): AsyncGenerator<string> {
  for await (const value of values) yield storableJson(value);
}

/** Stores rows of a file while it is received. */
export async function addRows(
  db: Knex,
  importId: string,
  rows: AsyncIterable<FileRow>,
): Promise<void> {
  for await (const together of storedTogether(rows))
    await db.raw(
      "INSERT INTO import_rows (import_id, line, mutation) SELECT ?, (r->>'line')::integer, r->'mutation' FROM json_array_elements(?::json) AS r",
      [importId, together],
    );
}

/**
 * Lists the next rows without an outcome, in the order of the file: those after a line, up to `limit`,
 * fewer of large rows. None if there are no more.
 */
export async function nextRows(
  db: Knex,
  importId: string,
  { limit, after = 0 }: { limit: number; after?: number },
): Promise<FileRow[]> {
  const query = db('import_rows')
    .where({ import_id: importId })
    .whereNull('outcome')
    .where('line', '>', after)
    .orderBy('line')
    .limit(limit)
    .select('line', 'mutation');
  const { rows } = await db.raw<{ rows: FileRow[] }>(
    ...boundedRows(query, 'octet_length(mutation::text)', HELD_BYTES),
  );
  return takePage(rows, { limit, maxBytes: HELD_BYTES }).items.map(({ line, mutation }) => ({
    line,
    mutation,
  }));
}

/** The lines of all rows without an outcome. */
export const pendingLines = (db: Knex, importId: string): Promise<number[]> =>
  db('import_rows')
    .where({ import_id: importId })
    .whereNull('outcome')
    .orderBy('line')
    .pluck('line');

/**
 * Stores the outcomes of rows and adds them to the progress and the counts of the import. What another
 * attempt has stored stays as it is. Many are stored by several statements: the caller has a transaction.
 * Requires `lockImport`.
 */
export async function recordOutcomes(
  trx: Knex,
  importId: string,
  outcomes: readonly RowOutcome[],
): Promise<void> {
  for await (const together of storedTogether(outcomes)) await recordSome(trx, importId, together);
}

/**
 * `outcomes` is their array as JSON. What is known of a row is read by its key: with a condition on `outcome` in the
 * join, PostgreSQL may compare all rows of the import with all outcomes.
 */
async function recordSome(trx: Knex, importId: string, outcomes: string): Promise<void> {
  await trx.raw(
    `WITH r AS MATERIALIZED (
        SELECT r.*, (SELECT t.outcome FROM import_rows AS t WHERE t.import_id = ? AND t.line = r.line) AS known
        FROM json_to_recordset(?::json) AS r (line integer, outcome text, "recordId" text, report json)),
      ended AS (UPDATE import_rows AS t SET outcome = r.outcome, record_id = r."recordId", report = r.report FROM r WHERE t.import_id = ? AND t.line = r.line AND r.known IS NULL RETURNING r.outcome)
     UPDATE imports SET done = done + (SELECT count(*) FROM ended),
       counts = coalesce((SELECT jsonb_object_agg(outcome, rows) FROM (
         SELECT outcome, sum(rows) AS rows FROM (
           SELECT key AS outcome, value::bigint AS rows FROM jsonb_each_text(imports.counts)
           UNION ALL SELECT outcome, 1 FROM ended) AS each
         GROUP BY outcome) AS summed), '{}')
     WHERE id = ?`,
    [importId, outcomes, importId, importId],
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

/**
 * Lists the rows of an import after a line, optionally with some outcomes: up to `limit`, fewer of
 * large rows. `next` is the last line if more follow.
 */
export async function listRows(
  db: Knex,
  importId: string,
  { outcomes, after, limit }: RowsRequest,
): Promise<{ rows: ReportedRow[]; next: number | null }> {
  const query = db('import_rows')
    .where({ import_id: importId })
    .where('line', '>', after)
    .orderBy('line')
    .limit(limit + 1)
    .select('line', 'outcome', 'record_id', 'report', 'mutation');
  if (outcomes !== undefined) void query.whereIn('outcome', [...outcomes]);
  const found = await db.raw<{ rows: ReportedRow[] }>(
    ...boundedRows(
      query,
      "octet_length(mutation::text) + octet_length(coalesce(report::text, ''))",
      HELD_BYTES,
    ),
  );
  const { items: rows, hasMore } = takePage(found.rows, { limit, maxBytes: HELD_BYTES });
  return { rows, next: hasMore ? (rows.at(-1)?.line ?? null) : null };
}

/**
 * The imports before an id that have rows and no record, at most `limit`. A loose index scan: one index
 * probe for each import that has rows, however many rows it has.
 */
async function findAbandoned(db: Knex, end: string, limit: number): Promise<string[]> {
  const { rows } = await db.raw<{ rows: { id: string }[] }>(
    `WITH RECURSIVE stored (id) AS (
       (SELECT import_id FROM import_rows WHERE import_id < :end ORDER BY import_id LIMIT 1)
       UNION ALL
       SELECT (SELECT r.import_id FROM import_rows AS r
               WHERE r.import_id > stored.id AND r.import_id < :end ORDER BY r.import_id LIMIT 1)
       FROM stored WHERE stored.id IS NOT NULL
     )
     SELECT id FROM stored
     WHERE id IS NOT NULL AND NOT EXISTS (SELECT FROM imports WHERE imports.id = stored.id)
     LIMIT :limit`,
    { end, limit },
  );
  return rows.map(({ id }) => id);
}

/**
 * Deletes up to `limit` rows of files older than `before` that were never received completely.
 * Returns the number of deleted rows.
 */
export async function purgeAbandonedImportRows(
  db: Knex,
  before: Date,
  limit: number,
): Promise<number> {
  const abandoned = await findAbandoned(db, minIdAt('imp', before), limit);
  if (abandoned.length === 0) return 0;
  const { rowCount } = await db.raw<{ rowCount: number }>(
    `DELETE FROM import_rows WHERE (import_id, line) IN (
       SELECT import_id, line FROM import_rows WHERE import_id = ANY (?::text[])
       ORDER BY import_id, line LIMIT ?)`,
    [abandoned, limit],
  );
  return rowCount;
}
