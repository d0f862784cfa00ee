import { AuditEntry } from '../models/AuditEntry.ts';
import { keysetPage, type KeysetPage, type PageRequest } from '../core/keyset.ts';
import type { Knex } from '../core/knex.ts';
import type { Scope } from '../../domain/access/scope.ts';
import { stateAt, type RecordChange } from '../../domain/inventory/history.ts';
import { recordKey, type PlannedChange } from '../../domain/inventory/planSnapshot.ts';
import type { Resource, Row } from '../../domain/inventory/resource.ts';
import { RESOURCES } from '../../domain/inventory/resources/index.ts';
import { readRecord, tenantsIn } from './records.ts';
import { withCanonicalAddresses } from './tables.ts';

const entriesOf = (db: Knex, { kind }: Resource, id: string) =>
  AuditEntry.query(db)
    .where({ subject_type: kind, subject_id: id, outcome: 'done' })
    .where('action', 'like', 'inventory.%');

/** The states of an entry as responses have them: restores write addresses as PostgreSQL formats them. */
function withStates<E extends Pick<AuditEntry, 'before' | 'after'>>(
  resource: Resource,
  entry: E,
): E {
  for (const state of [entry.before, entry.after])
    if (state) withCanonicalAddresses(resource, state as Row);
  return entry;
}

/** Lists the changes of a record, newest first: its entries of the audit log. */
export async function listChanges(
  db: Knex,
  resource: Resource,
  id: string,
  page: PageRequest,
): Promise<KeysetPage<AuditEntry>> {
  const { items, nextKey } = await keysetPage(entriesOf(db, resource, id), page);
  return { items: items.map((entry) => withStates(resource, entry)), nextKey };
}

/**
 * The state of a record at a time; null when it did not exist, undefined when the audit log does not
 * say. It is read in one snapshot: a change in between would be missing on one side.
 */
export const findStateAt = (
  db: Knex,
  resource: Resource,
  id: string,
  at: Date,
): Promise<Row | null | undefined> =>
  db.transaction(
    async (trx) => {
      const read = async (operator: '<=' | '>', order: 'asc' | 'desc') => {
        const [entry] = await entriesOf(trx, resource, id)
          .where('at', operator, at)
          .orderBy('id', order)
          .limit(1);
        return entry && (withStates(resource, entry) as RecordChange);
      };
      const [previous, next] = [await read('<=', 'desc'), await read('>', 'asc')];
      const present = next ? undefined : await readRecord(trx, resource.name, id);
      return stateAt(at, previous, next, present ?? null);
    },
    { isolationLevel: 'repeatable read', readOnly: true },
  );

/** The last state of a deleted record; undefined when the record exists, or nothing is known of it. */
export async function findDeleted(
  db: Knex,
  resource: Resource,
  id: string,
): Promise<Row | undefined> {
  if (await readRecord(db, resource.name, id)) return undefined;
  const [entry] = await entriesOf(db, resource, id).orderBy('id', 'desc').limit(1);
  return (entry?.after ?? entry?.before ?? undefined) as Row | undefined;
}

/**
 * The last versions of the deleted records whose ids changes create again, by `recordKey`, as far as the audit
 * log has them. Only ids that callers choose can return.
 */
export async function findFormerVersions(
  db: Knex,
  changes: readonly PlannedChange[],
): Promise<Map<string, number>> {
  const created = changes.filter(
    ({ resource, before, after }) =>
      before === null && after !== null && RESOURCES[resource].idPrefix === null,
  );
  if (created.length === 0) return new Map();
  const { rows } = await db.raw<{ rows: { n: number; version: number | null }[] }>(
    `SELECT asked.n::integer, (coalesce(e.after, e.before)->>'version')::integer AS version
     FROM unnest(?::text[], ?::text[]) WITH ORDINALITY AS asked (type, id, n)
     CROSS JOIN LATERAL (SELECT before, after FROM audit_entries
       WHERE subject_type = asked.type AND subject_id = asked.id AND outcome = 'done' AND action LIKE 'inventory.%'
       ORDER BY id DESC LIMIT 1) AS e`,
    [created.map(({ resource }) => RESOURCES[resource].kind), created.map(({ id }) => id)],
  );
  return new Map(
    rows.flatMap(({ n, version }): [string, number][] => {
      const change = created[n - 1];
      return change && version !== null ? [[recordKey(change.resource, change.id), version]] : [];
    }),
  );
}

/** The last state of a record in a tenant of `scope` that it has left for another one. */
export async function findLeft(
  db: Knex,
  resource: Resource,
  scope: Scope,
  id: string,
): Promise<Row | undefined> {
  const { sql, bindings } = tenantsIn(scope);
  const [entry] = await entriesOf(db, resource, id)
    .whereNull('after')
    .whereRaw(sql, bindings)
    .orderBy('id', 'desc')
    .limit(1);
  return (entry?.before ?? undefined) as Row | undefined;
}

/** What a request has done with each of its mutations. */
export type BulkResults = readonly {
  resource: string;
  outcome: string;
  id: string | null;
  version: number | null;
}[];

/** The results of a request of this actor that many mutations were part of, from its audit entry. */
export async function findBulkResults(
  db: Knex,
  { actorId, tenantId }: { actorId: string; tenantId: string },
  bulkId: string,
): Promise<BulkResults | undefined> {
  const [entry] = await AuditEntry.query(db)
    .where({ subject_type: 'bulk', subject_id: bulkId, action: 'inventory.bulk' })
    .where({ actor_id: actorId, tenant_id: tenantId, outcome: 'done' })
    .limit(1);
  return (entry?.after as { results: BulkResults } | null | undefined)?.results;
}
