import { PLATFORM, type Scope } from '../../domain/access/scope.ts';
import { MAX_FINDINGS, type ChangeKind } from '../../domain/backups/backups.ts';
import { heldRecord, HELD_TABLES } from '../retention/holds.ts';
import { quoteIdentifier, type Reference, type RunQuery } from './catalog.ts';
import { findForeignTies } from './foreignTies.ts';
import type { RestoreConflict } from './restoreConflict.ts';
import { isDerived, type PlannedTable, type RestorePlan } from './restorePlan.ts';
import { restoredTable } from './restoredTables.ts';
import { columnList, columnsEqual, diffTable, liveTable, refersTo } from './sql.ts';
import { TABLES, type BackedUpTable } from './tables.ts';
import { findUnassignedSpace } from './unassignedSpace.ts';

/** Tables whose rows a restore deletes or recalculates together with the rows they refer to. */
const CASCADING_TABLES: ReadonlySet<string> = new Set([
  'sessions',
  'session_tokens',
  'logins',
  'cable_ends',
  'free_hints',
]);

/** The number of differences of each kind, by table. */
type ChangeCounts = ReadonlyMap<string, Readonly<Record<ChangeKind, number>>>;

/**
 * Finds the current records that prevent a restore, at most 100 for each foreign key. Requires
 * `findDifferences`. Only tables that `changes` counts differences of can have any. `writable`: where the
 * owner of the restore may write in the inventory.
 */
export async function findConflicts(
  query: RunQuery,
  plan: RestorePlan,
  changes: ChangeCounts,
  writable: Scope,
): Promise<RestoreConflict[]> {
  const byName = new Map(plan.tables.map((planned) => [planned.table.name, planned]));
  const hasAny = ({ table }: PlannedTable, ...kinds: ChangeKind[]) =>
    kinds.some((kind) => (changes.get(table.name)?.[kind] ?? 0) > 0);
  const found: RestoreConflict[] = [];
  for (const planned of plan.tables)
    if (planned.role === 'state') {
      if (hasAny(planned, 'created')) found.push(...(await findOwnedByOtherTenant(query, planned)));
      if (hasAny(planned, 'changed', 'deleted')) found.push(...(await findHeld(query, planned)));
    }
  for (const reference of plan.references) {
    const child = byName.get(reference.child);
    const parent = byName.get(reference.parent);
    // Derived references, such as the parent of a prefix, are recalculated after the restore.
    if (child && reference.columns.some((pair) => isDerived(plan, child, pair.child))) continue;
    if (parent && hasAny(parent, 'deleted'))
      found.push(...(await findStillReferenced(query, reference, parent, child)));
    if (child && !reference.remembers && hasAny(child, 'created', 'changed'))
      found.push(...(await findMissingReferences(query, plan, reference, child, parent)));
  }
  const { tenantId } = plan.scope;
  if (tenantId === null) return found;
  const written = plan.tables.filter(
    (each) => each.table.section === 'inventory' && hasAny(each, 'created', 'changed'),
  );
  const restore = { plan, tenantId, written, writable };
  const ties = await findForeignTies(query, restore);
  return [...found, ...ties, ...(await findUnassignedSpace(query, restore))];
}

/** Records that would remain and refer to records that would be deleted. */
async function findStillReferenced(
  query: RunQuery,
  reference: Reference,
  parent: PlannedTable,
  child: PlannedTable | undefined,
): Promise<RestoreConflict[]> {
  const rowsRemain = parent.role !== 'state' || parent.table.tombstone !== null;
  if (rowsRemain || CASCADING_TABLES.has(reference.child)) return [];
  const isUnchanged = child ? `AND ${isNotReplaced(child.table, 'c')}` : '';
  const known = TABLES.find(({ name }) => name === reference.child);
  const key = known ? `concat_ws('/', ${columnList(known.key, 'c')})` : `''`;
  return query<RestoreConflict>(
    `SELECT 'still_referenced' AS code, '${reference.child}' AS table, ${key} AS key,
       concat_ws('/', ${columnList(parent.table.key, 'd')}) AS other,
       coalesce(to_jsonb(c) ->> 'tenant_id', '${PLATFORM}') AS "tenantId"
     FROM ${diffTable(parent.table)} AS d
       JOIN ${liveTable(parent.table)} AS p ON ${columnsEqual(parent.table.key, 'p', 'd')}
       JOIN public.${quoteIdentifier(reference.child)} AS c ON ${refersTo(reference, 'c', 'p')}
     WHERE d.change = 'deleted' ${isUnchanged} LIMIT ${MAX_FINDINGS}`,
  );
}

/** Records that would be restored and refer to records that would not exist. */
async function findMissingReferences(
  query: RunQuery,
  plan: RestorePlan,
  reference: Reference,
  child: PlannedTable,
  parent: PlannedTable | undefined,
): Promise<RestoreConflict[]> {
  const childColumns = reference.columns.map((pair) => pair.child);
  const isSet = childColumns.map((name) => `c.${quoteIdentifier(name)} IS NOT NULL`).join(' AND ');
  const remains = parent?.table.tombstone === null ? `AND ${isNotReplaced(parent.table, 'p')}` : '';
  const isNotRestored = parent
    ? `AND NOT EXISTS (
         SELECT FROM ${restoredTable(plan, parent.table)} AS q
           JOIN ${diffTable(parent.table)} AS y
             ON ${columnsEqual(parent.table.key, 'y', 'q')} AND y.change <> 'deleted'
         WHERE ${refersTo(reference, 'c', 'q')})`
    : '';
  return query<RestoreConflict>(
    `SELECT 'missing_reference' AS code, '${reference.child}' AS table,
       concat_ws('/', ${columnList(child.table.key, 'c')}) AS key,
       '${reference.parent} ' || concat_ws('/', ${columnList(childColumns, 'c')}) AS other
     FROM ${restoredTable(plan, child.table)} AS c
       JOIN ${diffTable(child.table)} AS d
         ON ${columnsEqual(child.table.key, 'c', 'd')} AND d.change <> 'deleted'
     WHERE ${isSet}
       AND NOT EXISTS (
         SELECT FROM public.${quoteIdentifier(reference.parent)} AS p
         WHERE ${refersTo(reference, 'c', 'p')} ${remains})
       ${isNotRestored}
     LIMIT ${MAX_FINDINGS}`,
  );
}

/** Records that another tenant owns now, although the backup holds them for the restored tenant. */
const findOwnedByOtherTenant = (
  query: RunQuery,
  { table }: PlannedTable,
): Promise<RestoreConflict[]> =>
  query<RestoreConflict>(
    `SELECT 'owned_by_other_tenant' AS code, '${table.name}' AS table,
       concat_ws('/', ${columnList(table.key, 'd')}) AS key, '' AS other
     FROM ${diffTable(table)} AS d
       JOIN ${liveTable(table)} AS l ON ${columnsEqual(table.key, 'l', 'd')}
     WHERE d.change = 'created' LIMIT ${MAX_FINDINGS}`,
  );

/** Records that the restore would delete or change, and that a legal hold keeps as they are. */
async function findHeld(query: RunQuery, { table }: PlannedTable): Promise<RestoreConflict[]> {
  const held = HELD_TABLES.find((each) => each.table === table.name);
  if (!held) return [];
  return query<RestoreConflict>(
    `SELECT 'legal_hold' AS code, '${table.name}' AS table,
       concat_ws('/', ${columnList(table.key, 'd')}) AS key, '' AS other
     FROM ${diffTable(table)} AS d
       JOIN ${liveTable(table)} AS l ON ${columnsEqual(table.key, 'l', 'd')}
     WHERE d.change <> 'created' AND ${heldRecord(held, 'l')} LIMIT ${MAX_FINDINGS}`,
  );
}

/** True when the restore neither deletes nor replaces the current row `alias`. */
const isNotReplaced = (table: BackedUpTable, alias: string): string =>
  `NOT EXISTS (SELECT FROM ${diffTable(table)} AS x
     WHERE x.change <> 'created' AND ${columnsEqual(table.key, 'x', alias)})`;
