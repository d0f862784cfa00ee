import { SECTIONS, type Section } from '../../domain/backups/backups.ts';
import type { ArchivedTable } from '../../platform/archive/index.ts';
import {
  findReferences,
  readColumns,
  tablesOf,
  type Column,
  type Reference,
  type RunQuery,
} from './catalog.ts';
import type { BackupScope } from './snapshot.ts';
import type { BackedUpTable } from './tables.ts';

/**
 * What a restore does with a table: make it equal to the backup (`state`), add missing rows
 * (`history`), or add only missing rows that restored rows refer to (`referenced`).
 */
type TableRole = 'state' | 'history' | 'referenced';

export type PlannedTable = { table: BackedUpTable; role: TableRole; columns: readonly Column[] };

/** What a restore covers. `schema` is the staging schema that holds the archive. */
export type RestorePlan = {
  schema: string;
  scope: BackupScope;
  tables: PlannedTable[];
  references: Reference[];
  sections: Section[];
  /** True when retention has purged records, which the restore does not bring back. */
  hasPurged: boolean;
  /** True for a database without records: it gets all as it was, also accounts and credentials. */
  intoEmptyDatabase: boolean;
};

type PlanInput = {
  schema: string;
  scope: BackupScope;
  sections: readonly Section[];
  archived: readonly ArchivedTable[];
  intoEmptyDatabase?: boolean;
};

/**
 * Plans a restore of `sections` from an archive with the tables `archived`. Tables of other
 * sections take part as `referenced`. So do tables that tenants share, when the restore is limited
 * to one tenant, and tables that are newer than the archive, which holds nothing about them.
 */
export async function planRestore(
  query: RunQuery,
  { schema, scope, sections, archived, intoEmptyDatabase = false }: PlanInput,
): Promise<RestorePlan> {
  const tables: PlannedTable[] = [];
  const columns = await readColumns(query, 'public');
  for (const table of tablesOf([...new Set(archived.map(({ section }) => section))])) {
    const isRestored =
      archived.some(({ name }) => name === table.name) &&
      sections.includes(table.section) &&
      (scope.tenantId === null || table.tenantFilter !== null);
    tables.push({
      table,
      role: isRestored ? table.mode : 'referenced',
      columns: columns.get(table.name) ?? [],
    });
  }
  return {
    schema,
    scope,
    tables,
    references: await findReferences(query),
    hasPurged: await hasPurgeMarks(query),
    intoEmptyDatabase,
    sections: SECTIONS.filter((section) => sections.includes(section)),
  };
}

/** True when anything was ever purged. */
async function hasPurgeMarks(query: RunQuery): Promise<boolean> {
  const [row] = await query<{ found: boolean }>(
    'SELECT EXISTS (SELECT FROM public.purge_marks) AS found',
  );
  return row?.found === true;
}

/** The planned table of this name, if the restore covers it. */
export const findPlanned = ({ tables }: RestorePlan, name: string): PlannedTable | undefined =>
  tables.find(({ table }) => table.name === name);

/** Tables whose rows decide who may do what, or where. */
const RIGHTS_TABLES: ReadonlySet<string> = new Set([
  'sites',
  'devices',
  'users',
  'roles',
  'grants',
]);

/** True when a restore may change permissions. Records that it adds by reference have none yet. */
export const mayChangeRights = ({ tables }: RestorePlan): boolean =>
  tables.some(({ table, role }) => role === 'state' && RIGHTS_TABLES.has(table.name));

/**
 * True for a column that is recalculated instead of restored: when one tenant's rows are restored,
 * its value depends on current rows of other tenants.
 */
export const isDerived = (
  { scope }: RestorePlan,
  { table }: PlannedTable,
  column: string,
): boolean => scope.tenantId !== null && table.derived.includes(column);

/**
 * True for the version of a record that a restore replaces. Versions never go back: clients have seen those
 * after the backup with other content, so that a restored record gets a greater one.
 */
export const isAdvanced = (
  { intoEmptyDatabase }: Pick<RestorePlan, 'intoEmptyDatabase'>,
  { table }: Pick<PlannedTable, 'table'>,
  column: string,
): boolean => column === 'version' && table.mode === 'state' && !intoEmptyDatabase;

/** The columns by which rows of the backup and current rows are compared. */
export const comparedColumns = (plan: RestorePlan, planned: PlannedTable): Column[] =>
  planned.columns.filter(
    ({ name }) =>
      !planned.table.preserved.includes(name) &&
      !isDerived(plan, planned, name) &&
      !isAdvanced(plan, planned, name),
  );
