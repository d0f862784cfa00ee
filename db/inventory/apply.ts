import type { Knex } from '../core/knex.ts';
import { jsonArrays } from '../core/jsonArrays.ts';
import { prepared } from '../core/prepared.ts';
import type { RecordChange as StatementPart } from '../core/unitOfWork.ts';
import { ConcurrencyError } from '../core/constraints.ts';
import { isSame } from '../../domain/inventory/difference.ts';
import type { ResourceName } from '../../domain/inventory/names.ts';
import type { Row } from '../../domain/inventory/resource.ts';
import { RESOURCES } from '../../domain/inventory/resources/index.ts';
import { recordKey, type PlannedChange } from '../../domain/inventory/planSnapshot.ts';
import { columnOf, storedColumns, storedForm, tableOf } from './tables.ts';

/**
 * The time of a change of a record, by that of its transaction: one that has waited for another began
 * before the version that it replaces. Times as `toISOString` writes them, which texts compare.
 */
function timeOfChange({ createdAt, updatedAt }: Row, at: string): string {
  const [created, updated] = [String(createdAt), String(updatedAt)];
  const latest = updated > created ? updated : created;
  return latest < at ? at : new Date(Date.parse(latest) + 1).toISOString();
}

/**
 * Assigns versions and timestamps to planned changes; each change makes one version, which is later than
 * the one before it. A record whose id a deleted one had goes on with its versions: `former` has those of
 * records that were deleted before (`findFormerVersions`).
 */
export function createStamper(now: Date, former: ReadonlyMap<string, number> = new Map()) {
  const latest = new Map<string, Row>();
  const at = now.toISOString();
  return {
    stamp({ resource, id, before, after }: PlannedChange): PlannedChange {
      const key = recordKey(resource, id);
      const previous = before && (latest.get(key) ?? before);
      const lastVersion = (previous ?? latest.get(key))?.version ?? former.get(key) ?? 0;
      const next = after && {
        ...after,
        version: lastVersion + 1,
        createdAt: previous?.createdAt ?? at,
        updatedAt: previous ? timeOfChange(previous, at) : at,
      };
      const last = next ?? previous;
      if (last) latest.set(key, last);
      return { resource, id, before: previous, after: next };
    },
  };
}

/**
 * Fields that no constraint compares between records, so that the order of their updates does not
 * matter and one statement can update several records.
 */
const BATCHABLE_FIELDS: ReadonlySet<string> = new Set([
  'parentPrefixId',
  'interfaceId',
  'deviceId',
  'lagId',
  'description',
  'tags',
  'sharedWith',
  'customFields',
  'status',
  'version',
  'createdAt',
  'updatedAt',
]);

const changedFields = (before: Row, after: Row): string[] =>
  Object.keys(after).filter((field) => !isSame(before[field], after[field]));

/** True for an update of batchable fields only. An interface follows its device in any order. */
const isBatchable = ({ resource, before, after }: PlannedChange): boolean =>
  before !== null &&
  after !== null &&
  changedFields(before, after).every(
    (field) =>
      BATCHABLE_FIELDS.has(field) ||
      (resource === 'interfaces' && (field === 'tenantId' || field === 'siteId')),
  );

/** The order of inserts. Triggers read referenced records: a device its rack, a prefix its VRF. */
const INSERT_ORDER: readonly ResourceName[] = [
  'tenants',
  'regions',
  'sites',
  'locations',
  'manufacturers',
  'device-types',
  'device-roles',
  'platforms',
  'racks',
  'vrfs',
  'vlan-groups',
  'vlans',
  'devices',
  'interfaces',
];
const rankOf = (name: ResourceName): number =>
  INSERT_ORDER.includes(name) ? INSERT_ORDER.indexOf(name) : INSERT_ORDER.length;

/** Changes that can be written in this order: all deletes, all updates, all creates. */
type Phase = {
  touched: Set<string>;
  createdKeys: Set<string>;
  deleted: Map<ResourceName, PlannedChange[]>;
  updated: PlannedChange[];
  created: Map<ResourceName, PlannedChange[]>;
};

const emptyPhase = (): Phase => ({
  touched: new Set(),
  createdKeys: new Set(),
  deleted: new Map(),
  updated: [],
  created: new Map(),
});

function addTo(groups: Map<ResourceName, PlannedChange[]>, step: PlannedChange): void {
  const group = groups.get(step.resource);
  if (group) group.push(step);
  else groups.set(step.resource, [step]);
}

/** A reference that no trigger reads, and that is checked at the end of the transaction. */
const UNREAD_REFERENCE = 'parentPrefixId';

/**
 * True for an update that makes its record refer to one that the phase creates. Its trigger may read it:
 * a range copies from its VRF whether that is shared, a cable from its interfaces whose they are.
 */
const refersToCreated = (
  { resource, before, after }: PlannedChange,
  { createdKeys }: Phase,
): boolean =>
  before !== null &&
  after !== null &&
  createdKeys.size > 0 &&
  Object.entries(RESOURCES[resource].fields).some(
    ([name, { reference }]) =>
      reference !== undefined &&
      name !== UNREAD_REFERENCE &&
      before[name] !== after[name] &&
      createdKeys.has(`${reference}/${String(after[name])}`),
  );

/** True for the deletion of a site that devices of the phase leave: their reference is checked immediately. */
const isLeft = ({ resource, after }: PlannedChange, { updated }: Phase): boolean =>
  resource === 'sites' && after === null && updated.some((step) => step.resource === 'devices');

/**
 * Writes planned changes with the same result as one after another. Changes are grouped as long as
 * their order makes no difference. Throws `ConcurrencyError` when another transaction has changed
 * one of the records since it was read.
 */
export async function writeSteps(trx: Knex, steps: readonly PlannedChange[]): Promise<void> {
  let phase = emptyPhase();
  for (const step of steps) {
    const key = `${step.resource}/${step.id}`;
    if (phase.touched.has(key) || refersToCreated(step, phase) || isLeft(step, phase)) {
      await writePhase(trx, phase);
      phase = emptyPhase();
    }
    phase.touched.add(key);
    if (step.before && step.after) phase.updated.push(step);
    else {
      if (step.after) phase.createdKeys.add(key);
      const group = step.after ? phase.created : phase.deleted;
      addTo(group, step);
    }
  }
  await writePhase(trx, phase);
}

/** From this number of changes, PostgreSQL writes them while their audit entries are made. */
export const MANY_CHANGES = 100;

/**
 * A few creates of one resource as a part of the final statement of a commit, which saves a round trip.
 * Null when the changes are anything else.
 */
export function asSingleInsert(steps: readonly PlannedChange[]): StatementPart | null {
  const [first] = steps;
  if (
    !first ||
    steps.length >= MANY_CHANGES ||
    steps.some(
      ({ resource, before, after }) =>
        resource !== first.resource || before !== null || after === null,
    )
  )
    return null;
  const { sql, rows } = insertion(first.resource, steps);
  return { sql: (name) => `${name} AS (${sql} RETURNING 1)`, bindings: [rows], topics: [] };
}

async function writePhase(trx: Knex, { deleted, updated, created }: Phase): Promise<void> {
  // Not every reference is checked at the end of the transaction: a site goes after its devices.
  for (const [resource, steps] of [...deleted].sort(([a], [b]) => rankOf(b) - rankOf(a)))
    await remove(trx, resource, steps);
  const batched = new Map<ResourceName, PlannedChange[]>();
  for (const step of updated) {
    if (!isBatchable(step)) await update(trx, step.resource, [step]);
    else addTo(batched, step);
  }
  for (const [resource, steps] of batched) await update(trx, resource, steps);
  for (const [resource, steps] of [...created].sort(([a], [b]) => rankOf(a) - rankOf(b)))
    await insert(trx, resource, steps);
}

const rowsOf = (resource: ResourceName, steps: readonly PlannedChange[]): string =>
  JSON.stringify(
    steps.flatMap(({ after }) => (after ? [storedForm(RESOURCES[resource], after)] : [])),
  );

function insertion(
  resource: ResourceName,
  steps: readonly PlannedChange[],
): { sql: string; rows: string } {
  const table = tableOf(RESOURCES[resource]);
  const columns = storedColumns(RESOURCES[resource]).join(', ');
  return {
    sql: `INSERT INTO ${table} (${columns}) SELECT ${columns} FROM json_populate_recordset(NULL::${table}, ?::json)`,
    rows: rowsOf(resource, steps),
  };
}

async function insert(
  trx: Knex,
  resource: ResourceName,
  steps: readonly PlannedChange[],
): Promise<void> {
  const { sql, rows } = insertion(resource, steps);
  await prepared(trx, sql, [rows]);
}

function assertAllWritten(written: number, count: number): void {
  if (written < count) throw new ConcurrencyError();
}

async function remove(
  trx: Knex,
  resource: ResourceName,
  steps: readonly PlannedChange[],
): Promise<void> {
  const { rowCount } = await trx.raw<{ rowCount: number }>(
    `DELETE FROM ${tableOf(RESOURCES[resource])} WHERE (id, version) IN (SELECT * FROM unnest(?::text[], ?::integer[]))`,
    [steps.map(({ id }) => id), steps.map(({ before }) => before?.version ?? 0)],
  );
  assertAllWritten(rowCount, steps.length);
}

/** Updates, and sends, changed columns only: triggers on others do not fire, and records can be large. */
async function update(
  trx: Knex,
  resource: ResourceName,
  steps: readonly PlannedChange[],
): Promise<void> {
  const table = tableOf(RESOURCES[resource]);
  const columns = [
    ...new Set(
      steps.flatMap(({ before, after }) => (before && after ? changedFields(before, after) : [])),
    ),
  ].map(columnOf);
  const sent = ['id', ...columns];
  const rowOf = ({ after }: PlannedChange) => {
    const stored = after ? storedForm(RESOURCES[resource], after) : {};
    return Object.fromEntries(sent.map((column) => [column, stored[column]]));
  };
  for (const { text, count } of jsonArrays(steps, rowOf)) {
    const { rowCount } = await trx.raw<{ rowCount: number }>(
      `UPDATE ${table} AS t SET ${columns.map((column) => `${column} = r.${column}`).join(', ')} FROM json_populate_recordset(NULL::${table}, ?::json) AS r
     WHERE t.id = r.id AND t.version = r.version - 1`,
      [text],
    );
    assertAllWritten(rowCount, count);
  }
}
