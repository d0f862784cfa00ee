import type { Knex } from '../../db/core/knex.ts';

/** The tables that grow with an installation. What people import and configure stays small. */
const LARGE_TABLES = [
  'approval_assignees',
  'approvals',
  'audit_entries',
  'cable_ends',
  'cables',
  'deliveries',
  'devices',
  'events',
  'grants',
  'interfaces',
  'ip_addresses',
  'ip_ranges',
  'jobs',
  'prefixes',
  'schedule_runs',
  'users',
  'vlans',
];

/** Columns with few values whose lists have another name for them, or that no list filters by. */
const CHOICES = ['source_kind', 'subject_type', 'level', 'role_id', 'resource', 'provider_id'];

/** Rows that PostgreSQL believes a large table to have. It reads the number of its pages from the file. */
const ROWS = 1_000_000;

/** A scan of the rows of a large table costs more, which would take longer than 50 ms. */
const MAX_COST = 8_000;

export type Statement = { sql: string; bindings: readonly unknown[] };

type PlanNode = {
  'Node Type': string;
  'Relation Name'?: string;
  'Total Cost': number;
  Plans?: PlanNode[];
};

/** The tables that a plan reads as a whole. */
const tablesReadWhole = (node: PlanNode): string[] => [
  ...(node['Node Type'] === 'Seq Scan' ? [node['Relation Name'] ?? ''] : []),
  ...(node.Plans ?? []).flatMap(tablesReadWhole),
];

/**
 * Sets the statistics of an installation with a million rows in every large table, as they would be in
 * the worst case: columns in `choices` have a few values, references a thousand, and any other text
 * differs in every row. A value that is not indexed is then found only by reading them all.
 */
async function setStatistics(trx: Knex, choices: readonly string[]): Promise<void> {
  await trx.raw('DELETE FROM pg_statistic WHERE starelid = ANY (?::regclass[])', [LARGE_TABLES]);
  await trx.raw(
    `SELECT pg_restore_attribute_stats('schemaname', schemaname::text, 'relname', tablename::text,
       'attname', attname::text, 'inherited', false, 'avg_width', 16,
       'null_frac', CASE WHEN attnotnull THEN 0 ELSE 0.5 END::real,
       'n_distinct', CASE WHEN attname = ANY (?::text[]) THEN 5
         WHEN attname IN ('user_id', 'subject_id') THEN -0.3
         WHEN attname ~ '_(id|by)$' THEN 1000
         WHEN atttypid IN ('boolean'::regtype) THEN 2
         WHEN atttypid IN ('integer'::regtype, 'float8'::regtype) THEN 1000 ELSE -1 END::real)
     FROM pg_tables JOIN pg_attribute ON attrelid = format('%I.%I', schemaname, tablename)::regclass
     WHERE schemaname = current_schema() AND tablename = ANY (?::text[]) AND attnum > 0
       AND NOT attisdropped AND atttypid <> 'jsonb'::regtype`,
    [[...choices, ...CHOICES], LARGE_TABLES],
  );
  await trx.raw(
    `UPDATE pg_class SET reltuples = ?, relpages = greatest(1, pg_relation_size(oid) / 8192)
     WHERE oid = ANY (?::regclass[])
       OR oid IN (SELECT indexrelid FROM pg_index WHERE indrelid = ANY (?::regclass[]))`,
    [ROWS, LARGE_TABLES, LARGE_TABLES],
  );
}

class Undo extends Error {}

/**
 * Plans statements as in a large installation, without executing them. Returns those that read a large
 * table as a whole, or cost as much, with the tables and the cost.
 */
export async function expensiveStatements<S extends Statement>(
  db: Knex,
  statements: Iterable<S>,
  choices: readonly string[],
): Promise<{ statement: S; tables: string[]; cost: number }[]> {
  const found: { statement: S; tables: string[]; cost: number }[] = [];
  const planning = db.transaction(async (trx) => {
    await setStatistics(trx, choices);
    for (const statement of statements) {
      const { rows } = await trx.raw<{ rows: { 'QUERY PLAN': [{ Plan: PlanNode }] }[] }>(
        // A question mark of the statement itself is an operator.
        `EXPLAIN (FORMAT JSON) ${statement.sql.replaceAll('?', '\\?').replaceAll(/\$\d+/g, '?')}`,
        statement.bindings as never,
      );
      const plan = rows[0]?.['QUERY PLAN'][0].Plan;
      if (!plan) throw new Error(`No plan of ${statement.sql}`);
      const tables = tablesReadWhole(plan).filter((table) => LARGE_TABLES.includes(table));
      const cost = plan['Total Cost'];
      if (tables.length > 0 || cost > MAX_COST) found.push({ statement, tables, cost });
    }
    throw new Undo();
  });
  await planning.catch((error: unknown) => {
    if (!(error instanceof Undo)) throw error;
  });
  return found;
}
