import type { Knex } from '../knex.ts';
import type { Row } from '../../domain/inventory/resource.ts';
import { RESOURCES } from '../../domain/inventory/resources/index.ts';
import type { Change } from '../../domain/inventory/world.ts';
import { storedColumns, storedForm, tableOf } from './tables.ts';

/** A planned change with the version and the times that it gets. */
export const stamped = ({ before, after, ...change }: Change, now: Date): Change => ({
  ...change, before,
  after: after && {
    ...after, version: before ? before.version + 1 : 1, createdAt: before?.createdAt ?? now.toISOString(), updatedAt: now.toISOString(),
  },
});

/**
 * Writes planned changes: what goes, then what changes, then what is new. Changes of one kind are one statement; those
 * that give a record another key go one by one, in the order in which they were planned.
 */
export async function writeChanges(trx: Knex, changes: readonly Change[]): Promise<void> {
  const groups = new Map<string, { change: Change; rows: Row[] }>();
  const add = (verb: string, change: Change, row: Row) => {
    const key = `${verb}|${change.resource}`;
    const group = groups.get(key);
    if (group) group.rows.push(row);
    else groups.set(key, { change, rows: [row] });
  };
  for (const change of changes) {
    if (!change.after && change.before) add('delete', change, change.before);
    if (change.after && !change.before) add('insert', change, change.after);
  }
  for (const [key, { change, rows }] of groups) {
    if (key.startsWith('delete')) await trx(tableOf(RESOURCES[change.resource])).whereIn('id', rows.map(({ id }) => id)).delete();
  }
  await updateAll(trx, changes.filter(({ before, after }) => before && after));
  for (const [key, { change, rows }] of groups) {
    if (key.startsWith('insert')) await trx.raw(...insertion(change, rows));
  }
}

function insertion({ resource }: Change, rows: readonly Row[]): [string, string[]] {
  const declared = RESOURCES[resource];
  const table = tableOf(declared);
  const columns = storedColumns(declared).join(', ');
  return [`INSERT INTO ${table} (${columns}) SELECT ${columns} FROM json_populate_recordset(NULL::${table}, ?::json)`, [JSON.stringify(rows.map((row) => storedForm(declared, row)))]];
}

/** Fields by which a record is one of its kind. */
const keyOf = ({ resource }: Change, row: Row | null): string => {
  const { unique, fields } = RESOURCES[resource];
  const names = [...unique.flat(), ...Object.keys(fields).filter((field) => ['network', 'address'].includes(fields[field]?.type ?? ''))];
  return JSON.stringify(names.map((field) => row?.[field]));
};

async function updateAll(trx: Knex, changes: readonly Change[]): Promise<void> {
  const many = new Map<string, Change[]>();
  for (const change of changes) {
    if (keyOf(change, change.before) !== keyOf(change, change.after)) await update(trx, [change]);
    else if (!many.get(change.resource)?.push(change)) many.set(change.resource, [change]);
  }
  for (const alike of many.values()) await update(trx, alike);
}

async function update(trx: Knex, changes: readonly Change[]): Promise<void> {
  const [first] = changes;
  if (!first) return;
  const declared = RESOURCES[first.resource];
  const table = tableOf(declared);
  const columns = storedColumns(declared).filter((column) => column !== 'id' && column !== 'created_at');
  const rows = changes.flatMap(({ after }) => (after ? [storedForm(declared, after)] : []));
  await trx.raw(
    `UPDATE ${table} AS t SET ${columns.map((column) => `${column} = r.${column}`).join(', ')} FROM json_populate_recordset(NULL::${table}, ?::json) AS r WHERE t.id = r.id`,
    [JSON.stringify(rows)],
  );
}
