import { AuditEntry } from '../models/AuditEntry.ts';
import { keysetPage, type KeysetPage, type PageRequest } from '../core/keyset.ts';
import type { Knex } from '../core/knex.ts';
import type { Resource, Row } from '../../domain/inventory/resource.ts';

const entriesOf = (db: Knex, { kind }: Resource, id: string) =>
  AuditEntry.query(db)
    .where({ subject_type: kind, subject_id: id, outcome: 'done' })
    .where('action', 'like', 'inventory.%');

/** Lists the changes of a record, newest first: its entries of the audit log. */
export const listChanges = (
  db: Knex,
  resource: Resource,
  id: string,
  page: PageRequest,
): Promise<KeysetPage<AuditEntry>> => keysetPage(entriesOf(db, resource, id), page);

/**
 * The state of a record at a time, or its last state. Null when it did not exist; undefined when the
 * audit log has no entry of it until then.
 */
export async function findStateAt(
  db: Knex,
  resource: Resource,
  id: string,
  at: Date | null,
): Promise<Row | null | undefined> {
  const query = entriesOf(db, resource, id).orderBy('id', 'desc').limit(1);
  if (at) void query.where('at', '<=', at);
  const [entry] = await query;
  return entry === undefined ? undefined : ((entry.after ?? null) as Row | null);
}

/** The last known state of a record, also of a deleted one. */
export async function findLastState(
  db: Knex,
  resource: Resource,
  id: string,
): Promise<Row | undefined> {
  const [entry] = await entriesOf(db, resource, id).orderBy('id', 'desc').limit(1);
  return (entry?.after ?? entry?.before ?? undefined) as Row | undefined;
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
