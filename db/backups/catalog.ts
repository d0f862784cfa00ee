import { SECTIONS, sectionsForTenant, type Section } from '../../domain/backups/backups.ts';
import { TABLES, type BackedUpTable } from './tables.ts';

/** A column as PostgreSQL describes it; `type` is the name that `format_type` returns. */
export type Column = { name: string; type: string; notNull: boolean };

/** A foreign key: table `child` refers to table `parent` by these pairs of columns. */
export type Reference = {
  child: string;
  parent: string;
  columns: { child: string; parent: string }[];
  /** The row only remembers the other one, which may have been purged. There is no foreign key. */
  remembers?: true;
};

const remembers = (child: string, column: string, parent: string): Reference => ({
  child,
  parent,
  columns: [{ child: column, parent: 'id' }],
  remembers: true,
});

/** References without a foreign key, because rows remain when the purge deletes what they name. */
const REMEMBERED: readonly Reference[] = [
  remembers('approvals', 'job_id', 'jobs'),
  remembers('deliveries', 'job_id', 'jobs'),
  remembers('job_logs', 'job_id', 'jobs'),
  remembers('jobs', 'retry_of', 'jobs'),
  remembers('schedule_runs', 'job_id', 'jobs'),
];

/** Runs a statement with numbered values (`$1`) on a connection or in a transaction. */
export type RunQuery = <Row extends object>(
  sql: string,
  values?: readonly unknown[],
) => Promise<Row[]>;

/** Quotes a name for use in SQL. */
export const quoteIdentifier = (name: string): string => `"${name.replaceAll('"', '""')}"`;

/** The columns of each table of a schema in their order, without generated columns. */
export async function readColumns(
  query: RunQuery,
  schema: string,
): Promise<ReadonlyMap<string, readonly Column[]>> {
  const columns = await query<Column & { table: string }>(
    `SELECT c.relname::text AS table, a.attname::text AS name,
       format_type(a.atttypid, NULL) AS type, a.attnotnull AS "notNull"
     FROM pg_attribute AS a
       JOIN pg_class AS c ON c.oid = a.attrelid JOIN pg_namespace AS n ON n.oid = c.relnamespace
     WHERE n.nspname = $1 AND c.relkind IN ('r', 'p')
       AND a.attnum > 0 AND NOT a.attisdropped AND a.attgenerated = ''
     ORDER BY c.relname, a.attnum`,
    [schema],
  );
  return Map.groupBy(columns, ({ table }) => table);
}

/** The references of all tables in the schema `public`: foreign keys, and those that remember. */
export async function findReferences(query: RunQuery): Promise<Reference[]> {
  const foreignKeys = await query<Reference>(
    `SELECT c.relname::text AS child, p.relname::text AS parent,
       (SELECT json_agg(json_build_object('child', ca.attname, 'parent', pa.attname) ORDER BY k.at)
        FROM unnest(r.conkey, r.confkey) WITH ORDINALITY AS k (child, parent, at)
          JOIN pg_attribute AS ca ON ca.attrelid = r.conrelid AND ca.attnum = k.child
          JOIN pg_attribute AS pa ON pa.attrelid = r.confrelid AND pa.attnum = k.parent) AS columns
     FROM pg_constraint AS r
       JOIN pg_class AS c ON c.oid = r.conrelid JOIN pg_class AS p ON p.oid = r.confrelid
     WHERE r.contype = 'f' AND r.connamespace = 'public'::regnamespace
     ORDER BY c.relname, r.conname`,
  );
  return [...foreignKeys, ...REMEMBERED];
}

/** Dependencies without a foreign key: inventory records name tags and custom fields. */
const IMPLICIT_DEPENDENCIES: Readonly<Partial<Record<Section, readonly Section[]>>> = {
  inventory: ['settings'],
};

/** The sections that `start` refers to, directly or through others, without those of `start`. */
function followReferences(references: readonly Reference[], start: readonly Section[]): Section[] {
  const sectionOf = new Map(TABLES.map(({ name, section }) => [name, section]));
  const found = new Set(start);
  // Iterating over a set also visits the values that are added during the iteration.
  for (const section of found) {
    for (const { child, parent } of references)
      if (sectionOf.get(child) === section) found.add(sectionOf.get(parent) ?? section);
    for (const other of IMPLICIT_DEPENDENCIES[section] ?? []) found.add(other);
  }
  return [...found].filter((section) => !start.includes(section));
}

/**
 * The sections that the requested ones refer to, directly or through others, without the requested
 * ones. A tenant's backup includes only sections that are available to tenants.
 */
export async function findReferencedSections(
  query: RunQuery,
  tenantId: string,
  requested: readonly Section[],
): Promise<Section[]> {
  const available = sectionsForTenant(tenantId);
  return followReferences(await findReferences(query), requested).filter((section) =>
    available.includes(section),
  );
}

/** The sections that each section refers to, directly or through others. */
export async function findSectionReferences(
  query: RunQuery,
): Promise<Readonly<Record<Section, Section[]>>> {
  const references = await findReferences(query);
  const entries = SECTIONS.map((section) => [section, followReferences(references, [section])]);
  return Object.fromEntries(entries) as Record<Section, Section[]>;
}

/** The tables of sections, in the order in which rows can be inserted. */
export const tablesOf = (sections: readonly string[]): BackedUpTable[] =>
  TABLES.filter(({ section }) => sections.includes(section));
