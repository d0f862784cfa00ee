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

/** The number of entries of one request that are returned. */
const MAX_REQUEST_ENTRIES = 20_000;

/** Lists all changes made by the request of this actor that last changed a record. */
export async function listRequestEntries(
  db: Knex,
  subjectId: string,
  actorId: string,
): Promise<AuditEntry[]> {
  const [entry] = await AuditEntry.query(db)
    .where({ subject_id: subjectId, actor_id: actorId, outcome: 'done' })
    .where('action', 'like', 'inventory.%')
    .orderBy('id', 'desc')
    .limit(1);
  if (!entry) return [];
  return AuditEntry.query(db)
    .where({ request_id: entry.requestId, actor_id: actorId, outcome: 'done' })
    .where('action', 'like', 'inventory.%')
    .orderBy('id')
    .limit(MAX_REQUEST_ENTRIES);
}
