import type { Knex } from '../core/knex.ts';
import { prepared } from '../core/prepared.ts';
import type { Change as StatementPart } from '../core/unitOfWork.ts';
import { Raced } from '../core/constraints.ts';
import { isSame } from '../../domain/inventory/difference.ts';
import type { ResourceName } from '../../domain/inventory/names.ts';
import type { Row } from '../../domain/inventory/resource.ts';
import { RESOURCES } from '../../domain/inventory/resources/index.ts';
import type { Change } from '../../domain/inventory/planSnapshot.ts';
import { columnOf, storedColumns, storedForm, tableOf } from './tables.ts';

/** Gives planned steps the versions and times that they get, one version a step. */
export function stamps(now: Date) {
  const latest = new Map<string, Row>();
  const at = now.toISOString();
  return {
    all: (steps: readonly Change[]): Change[] =>
      steps.map(({ resource, id, before, after }) => {
        const key = `${resource}/${id}`;
        const was = before && (latest.get(key) ?? before);
        const is = after && {
          ...after,
          version: was ? was.version + 1 : 1,
          createdAt: was?.createdAt ?? at,
          updatedAt: at,
        };
        if (is) latest.set(key, is);
        return { resource, id, before: was, after: is };
      }),
  };
}

/** Fields that no constraint and no trigger looks at but through the record they name: changes of them go together. */
const TOGETHER: ReadonlySet<string> = new Set([
  'parentPrefixId',
  'interfaceId',
  'deviceId',
  'lagId',
  'description',
  'tags',
  'customFields',
  'status',
  'version',
  'createdAt',
  'updatedAt',
]);

const changedFields = (before: Row, after: Row): string[] =>
  Object.keys(after).filter((field) => !isSame(before[field], after[field]));

const goTogether = ({ resource, before, after }: Change): boolean =>
  before !== null &&
  after !== null &&
  changedFields(before, after).every(
    (field) =>
      TOGETHER.has(field) ||
      (resource === 'interfaces' && (field === 'tenantId' || field === 'siteId')),
  );

/** New records in the order in which triggers look at them: a device at its rack and type, a prefix at its VRF. */
const FIRST: readonly ResourceName[] = [
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
  FIRST.includes(name) ? FIRST.indexOf(name) : FIRST.length;

/** Steps that can be written as what goes, what changes, what is new, in this order. */
type Phase = {
  touched: Set<string>;
  gone: Map<ResourceName, Change[]>;
  changed: Change[];
  made: Map<ResourceName, Change[]>;
};

const emptyPhase = (): Phase => ({
  touched: new Set(),
  gone: new Map(),
  changed: [],
  made: new Map(),
});

/** True when a change must see what the phase only makes at its end. */
const mustSee = ({ resource }: Change, { made }: Phase): boolean =>
  (
    ({
      prefixes: ['vrfs'],
      'ip-addresses': ['vrfs'],
      devices: ['racks', 'device-types'],
    }) as Partial<Record<ResourceName, ResourceName[]>>
  )[resource]?.some((name) => made.has(name)) ?? false;

/**
 * Writes planned steps as if one after the other: they are put together as long as the order makes no difference. A
 * record that another transaction has changed since it was read is `Raced`.
 */
export async function writeSteps(trx: Knex, steps: readonly Change[]): Promise<void> {
  let phase = emptyPhase();
  for (const step of steps) {
    const key = `${step.resource}/${step.id}`;
    if (phase.touched.has(key) || (step.before && step.after && mustSee(step, phase))) {
      await writePhase(trx, phase);
      phase = emptyPhase();
    }
    phase.touched.add(key);
    if (step.before && step.after) phase.changed.push(step);
    else {
      const group = step.after ? phase.made : phase.gone;
      if (!group.get(step.resource)?.push(step)) group.set(step.resource, [step]);
    }
  }
  await writePhase(trx, phase);
}

/** Steps that only make records of one resource, as a part of the statement that ends a commit; null for others. */
export function asOneInsert(steps: readonly Change[]): StatementPart | null {
  const [first] = steps;
  if (
    !first ||
    steps.some(
      ({ resource, before, after }) =>
        resource !== first.resource || before !== null || after === null,
    )
  )
    return null;
  const { sql, rows } = insertion(first.resource, steps);
  return { sql: (name) => `${name} AS (${sql} RETURNING 1)`, bindings: [rows], topics: [] };
}

async function writePhase(trx: Knex, { gone, changed, made }: Phase): Promise<void> {
  for (const [resource, steps] of gone) await remove(trx, resource, steps);
  const together = new Map<ResourceName, Change[]>();
  for (const step of changed) {
    if (!goTogether(step)) await update(trx, step.resource, [step]);
    else if (!together.get(step.resource)?.push(step)) together.set(step.resource, [step]);
  }
  for (const [resource, steps] of together) await update(trx, resource, steps);
  for (const [resource, steps] of [...made].sort(([a], [b]) => rankOf(a) - rankOf(b)))
    await insert(trx, resource, steps);
}

const rowsOf = (resource: ResourceName, steps: readonly Change[]): string =>
  JSON.stringify(
    steps.flatMap(({ after }) => (after ? [storedForm(RESOURCES[resource], after)] : [])),
  );

function insertion(
  resource: ResourceName,
  steps: readonly Change[],
): { sql: string; rows: string } {
  const table = tableOf(RESOURCES[resource]);
  const columns = storedColumns(RESOURCES[resource]).join(', ');
  return {
    sql: `INSERT INTO ${table} (${columns}) SELECT ${columns} FROM json_populate_recordset(NULL::${table}, ?::json)`,
    rows: rowsOf(resource, steps),
  };
}

async function insert(trx: Knex, resource: ResourceName, steps: readonly Change[]): Promise<void> {
  const { sql, rows } = insertion(resource, steps);
  await prepared(trx, sql, [rows]);
}

function mustBeAll(count: number, steps: readonly Change[]): void {
  if (count < steps.length) throw new Raced();
}

async function remove(trx: Knex, resource: ResourceName, steps: readonly Change[]): Promise<void> {
  const { rowCount } = await trx.raw<{ rowCount: number }>(
    `DELETE FROM ${tableOf(RESOURCES[resource])} WHERE (id, version) IN (SELECT * FROM unnest(?::text[], ?::integer[]))`,
    [steps.map(({ id }) => id), steps.map(({ before }) => before?.version ?? 0)],
  );
  mustBeAll(rowCount, steps);
}

/** Only the columns that change are written: triggers that look at others stay quiet. */
async function update(trx: Knex, resource: ResourceName, steps: readonly Change[]): Promise<void> {
  const table = tableOf(RESOURCES[resource]);
  const columns = [
    ...new Set(
      steps.flatMap(({ before, after }) => (before && after ? changedFields(before, after) : [])),
    ),
  ].map(columnOf);
  const { rowCount } = await trx.raw<{ rowCount: number }>(
    `UPDATE ${table} AS t SET ${columns.map((column) => `${column} = r.${column}`).join(', ')} FROM json_populate_recordset(NULL::${table}, ?::json) AS r
     WHERE t.id = r.id AND t.version = r.version - 1`,
    [rowsOf(resource, steps)],
  );
  mustBeAll(rowCount, steps);
}
