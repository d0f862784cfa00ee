import { assertDefined } from '../../domain/shared/assert.ts';
import { viaOf, type Caller } from '../../domain/shared/caller.ts';
import { PLATFORM } from '../../domain/access/scope.ts';
import type { Resource } from '../../domain/inventory/resource.ts';
import { RESOURCES } from '../../domain/inventory/resources/index.ts';
import { timeOfId } from '../../platform/ids.ts';
import { SHOWN_CLOCK } from '../core/databaseTime.ts';
import { auditedColumns, tableOf } from '../inventory/tables.ts';
import { quoteIdentifier, type RunQuery } from './catalog.ts';
import type { PlannedTable } from './restorePlan.ts';
import { diffTable, liveTable } from './sql.ts';
import type { BackedUpTable } from './tables.ts';

/** Who restores, for the audit entries of records. `entryIdAt` creates ids of audit entries. */
export type RestoreAuthor = { caller: Caller; entryIdAt(time: Date): string };

/** A table with the number of its rows that a restore changes. */
type Changed = { planned: PlannedTable; rows: number };

const RESOURCE_OF: ReadonlyMap<string, Resource> = new Map(
  Object.values(RESOURCES).map((resource) => [tableOf(resource), resource]),
);

const replacedTable = ({ name }: BackedUpTable): string =>
  `pg_temp.${quoteIdentifier(`_replaced_${name}`)}`;

/** SQL: the records that differ, but for those with the difference `except`, as the audit log has them. */
const statesSql = (resource: Resource, table: BackedUpTable, except: string): string =>
  `SELECT r.id, to_json(r) AS state FROM (
     SELECT ${auditedColumns(resource)} FROM ${liveTable(table)}
     WHERE id IN (SELECT id FROM ${diffTable(table)} WHERE change <> '${except}')) AS r`;

/** When the entries of a restore are, and an id with which theirs begin. */
type EntryTime = { at: Date; entryId: string };

/**
 * Keeps the records of the inventory that a restore will change or delete, for `auditRestoredRecords`. Call it after
 * `lockForRestore`: writers that the restore waited for come before it in the history of a record.
 */
export async function keepReplacedRecords(
  query: RunQuery,
  changed: readonly Changed[],
  author: RestoreAuthor,
): Promise<EntryTime> {
  const times: (Date | null)[] = [];
  for (const { planned } of changed) {
    const resource = RESOURCE_OF.get(planned.table.name);
    if (!resource) continue;
    await query(
      `CREATE TEMP TABLE ${quoteIdentifier(`_replaced_${planned.table.name}`)} ON COMMIT DROP AS
       ${statesSql(resource, planned.table, 'created')}`,
    );
    const [updated] = await query<{ last: Date | null }>(
      `SELECT max(updated_at) AS last FROM ${liveTable(planned.table)}
       WHERE id IN (SELECT id FROM ${diffTable(planned.table)} WHERE change <> 'created')`,
    );
    times.push(updated?.last ?? null);
  }
  return entryTimeAfter(query, times, author);
}

/**
 * A time after these, by which records were changed, and an id after those of all entries. Both are by the clock of the
 * database, unless processes whose clocks are ahead have written: the history of a record has its entries in
 * the order of both.
 */
async function entryTimeAfter(
  query: RunQuery,
  times: readonly (Date | null)[],
  { entryIdAt }: RestoreAuthor,
): Promise<EntryTime> {
  const [found] = await query<{ at: Date; lastId: string | null }>(
    `SELECT greatest(${SHOWN_CLOCK}, max(t.at) + interval '1 ms') AS at,
       (SELECT max(id) FROM public.audit_entries) AS "lastId"
     FROM unnest($1::timestamptz[]) AS t (at)`,
    [times],
  );
  const { at, lastId } = assertDefined(found, 'time of the restore');
  const afterLast = lastId === null ? 0 : timeOfId(lastId).getTime() + 1;
  return { at, entryId: entryIdAt(new Date(Math.max(at.getTime(), afterLast))) };
}

/** The digits of ids, which sort like their values. */
const DIGITS = '0123456789abcdefghjkmnpqrstvwxyz';
/** The digits at the end of an id that number the entries of a restore: up to a billion. */
const NUMBERED = 6;

const numberSql = (number: string): string =>
  Array.from({ length: NUMBERED }, (_, i) => 5 * (NUMBERED - 1 - i))
    .map((shift) => `substr('${DIGITS}', ((${number} >> ${shift}) & 31)::integer + 1, 1)`)
    .join(' || ');

/** SQL: the tenant of a record with a state; null without one. */
const tenantSql = ({ scopeKind }: Resource, state: string): string => {
  const tenants: Partial<Record<Resource['scopeKind'], string>> = {
    catalogue: `'${PLATFORM}'`,
    isTenant: 'd.id',
  };
  const tenant = tenants[scopeKind] ?? `coalesce(${state} ->> 'tenantId', '${PLATFORM}')`;
  return `CASE WHEN ${state} IS NOT NULL THEN ${tenant} END`;
};

/** SQL: what each tenant has of a change `c`. A record that moves is deleted in one and created in the other. */
const PARTS = `(
  SELECT 0, c.before, c.after, coalesce(c.present, c.former)
    WHERE coalesce(c.former = c.present, true)
  UNION ALL SELECT 0, c.before, NULL, c.former WHERE c.former <> c.present
  UNION ALL SELECT 1, NULL, c.after, c.present WHERE c.former <> c.present)`;

/**
 * Writes the audit entries of every record of the inventory that a restore has changed: the history of a
 * record consists of its entries. Requires `keepReplacedRecords`.
 */
export async function auditRestoredRecords(
  query: RunQuery,
  changed: readonly Changed[],
  { caller }: RestoreAuthor,
  { entryId, at }: EntryTime,
): Promise<void> {
  let written = 0;
  for (const { planned, rows } of changed) {
    const { table } = planned;
    const resource = RESOURCE_OF.get(table.name);
    if (!resource) continue;
    // Each value is used once, in this order.
    await query(
      `INSERT INTO public.audit_entries (id, tenant_id, actor_id, via, action, outcome, subject_type,
         subject_id, before, after, request_id, address, at)
       SELECT $1::text || ${numberSql(`(${written} + 2 * c.number + p.part)`)}, p.tenant_id, $2::text,
         CASE p.tenant_id WHEN $3::text THEN $4::text ELSE $5::text END,
         'inventory.${resource.kind}.restore', 'done', '${resource.kind}', c.id, p.before, p.after,
         $6::text, $7::text, $8::timestamptz
       FROM (
         SELECT d.id, b.state AS before, a.state AS after, ${tenantSql(resource, 'b.state')} AS former,
           ${tenantSql(resource, 'a.state')} AS present, row_number() OVER () AS number
         FROM ${diffTable(table)} AS d LEFT JOIN ${replacedTable(table)} AS b ON b.id = d.id
           LEFT JOIN (${statesSql(resource, table, 'deleted')}) AS a ON a.id = d.id
         WHERE b.state::text IS DISTINCT FROM a.state::text) AS c
         CROSS JOIN LATERAL ${PARTS} AS p (part, before, after, tenant_id)`,
      [
        entryId.slice(0, -NUMBERED),
        caller.actorId,
        caller.tenantId,
        viaOf(caller, caller.tenantId),
        viaOf(caller, ''),
        caller.requestId,
        caller.address,
        at,
      ],
    );
    written += 2 * rows;
  }
}
