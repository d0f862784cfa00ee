import { MAX_FINDINGS } from '../../domain/backups.ts';
import { quoted, type Ask, type Reference } from './catalog.ts';
import { TABLES } from './tables.ts';
import {
  diffOf,
  isWorkedOut,
  list,
  live,
  loaded,
  same,
  type PlannedTable,
  type RestorePlan,
} from './differences.ts';

/** A record that stands against a restore. */
export type Conflict = {
  code: 'still_referred' | 'missing_reference' | 'elsewhere';
  table: string;
  key: string;
  other: string;
};

/** What a restore takes along, or works out again, by itself. */
const FOLLOWS: ReadonlySet<string> = new Set([
  'sessions',
  'session_tokens',
  'logins',
  'cable_ends',
  'free_hints',
]);

const pairs = ({ childColumns, parentColumns }: Reference, child: string, parent: string): string =>
  childColumns
    .map(
      (column, at) => `${child}.${quoted(column)} = ${parent}.${quoted(parentColumns[at] ?? '')}`,
    )
    .join(' AND ');
const given = ({ childColumns }: Reference, alias: string): string =>
  childColumns.map((column) => `${alias}.${quoted(column)} IS NOT NULL`).join(' AND ');

/** Records that stay and refer to some that would be deleted. */
async function stillReferred(
  ask: Ask,
  reference: Reference,
  parent: PlannedTable,
  child: PlannedTable | undefined,
): Promise<Conflict[]> {
  if (parent.part !== 'state' || parent.table.tombstone !== null || FOLLOWS.has(reference.child))
    return [];
  const own = child
    ? `AND NOT EXISTS (SELECT FROM ${diffOf(child.table)} AS x WHERE x.change <> 'created' AND ${same(child.table.key, 'x', 'c')})`
    : '';
  const known = TABLES.find(({ name }) => name === reference.child);
  const key = known ? `concat_ws('/', ${list(known.key, 'c')})` : `''`;
  return ask<Conflict>(
    `SELECT 'still_referred' AS code, '${reference.child}' AS table, ${key} AS key, concat_ws('/', ${list(parent.table.key, 'd')}) AS other
     FROM ${diffOf(parent.table)} AS d JOIN ${live(parent.table)} AS p ON ${same(parent.table.key, 'p', 'd')}
       JOIN public.${quoted(reference.child)} AS c ON ${pairs(reference, 'c', 'p')}
     WHERE d.change = 'deleted' ${own} LIMIT ${MAX_FINDINGS}`,
  );
}

/** Records that come back and refer to what would not be there. */
async function missingReferences(
  ask: Ask,
  { schema }: RestorePlan,
  reference: Reference,
  child: PlannedTable,
  parent: PlannedTable | undefined,
): Promise<Conflict[]> {
  const taken =
    parent?.table.tombstone === null
      ? `AND NOT EXISTS (SELECT FROM ${diffOf(parent.table)} AS x WHERE x.change <> 'created' AND ${same(parent.table.key, 'x', 'p')})`
      : '';
  const coming = parent
    ? `AND NOT EXISTS (SELECT FROM ${loaded(schema, parent.table)} AS q JOIN ${diffOf(parent.table)} AS y ON ${same(parent.table.key, 'y', 'q')} AND y.change <> 'deleted' WHERE ${pairs(reference, 'c', 'q')})`
    : '';
  return ask<Conflict>(
    `SELECT 'missing_reference' AS code, '${reference.child}' AS table, concat_ws('/', ${list(child.table.key, 'c')}) AS key,
       '${reference.parent} ' || concat_ws('/', ${list(reference.childColumns, 'c')}) AS other
     FROM ${loaded(schema, child.table)} AS c JOIN ${diffOf(child.table)} AS d ON ${same(child.table.key, 'c', 'd')} AND d.change <> 'deleted'
     WHERE ${given(reference, 'c')}
       AND NOT EXISTS (SELECT FROM public.${quoted(reference.parent)} AS p WHERE ${pairs(reference, 'c', 'p')} ${taken}) ${coming}
     LIMIT ${MAX_FINDINGS}`,
  );
}

/** Records of a tenant that are another's now. */
const elsewhere = (ask: Ask, { table }: PlannedTable): Promise<Conflict[]> =>
  ask<Conflict>(
    `SELECT 'elsewhere' AS code, '${table.name}' AS table, concat_ws('/', ${list(table.key, 'd')}) AS key, '' AS other
     FROM ${diffOf(table)} AS d JOIN ${live(table)} AS l ON ${same(table.key, 'l', 'd')} WHERE d.change = 'created' LIMIT ${MAX_FINDINGS}`,
  );

/** What stands against a restore, in the records as they are. Differences must have been found. */
export async function findConflicts(ask: Ask, plan: RestorePlan): Promise<Conflict[]> {
  const byName = new Map(plan.tables.map((planned) => [planned.table.name, planned]));
  const found: Conflict[] = [];
  for (const planned of plan.tables)
    if (planned.part === 'state') found.push(...(await elsewhere(ask, planned)));
  for (const reference of plan.references) {
    // The parent of a prefix is worked out again where others' prefixes lie around it.
    const worked = byName.get(reference.child);
    if (worked && reference.childColumns.some((column) => isWorkedOut(plan, worked, column)))
      continue;
    const [child, parent] = [byName.get(reference.child), byName.get(reference.parent)];
    if (parent) found.push(...(await stillReferred(ask, reference, parent, child)));
    if (child) found.push(...(await missingReferences(ask, plan, reference, child, parent)));
  }
  return found;
}
