import { AuditEntry } from '../models/AuditEntry.ts';
import { keysetPage, type Page, type PageRequest } from '../core/keyset.ts';
import type { Knex } from '../core/knex.ts';
import type { Resource, Row } from '../../domain/inventory/resource.ts';

const entriesOf = (db: Knex, { kind }: Resource, id: string) =>
  AuditEntry.query(db)
    .where({ subject_type: kind, subject_id: id, outcome: 'done' })
    .where('action', 'like', 'inventory.%');

/** The changes of one record, newest first: its entries of the audit trail. */
export const listChanges = (
  db: Knex,
  resource: Resource,
  id: string,
  page: PageRequest,
): Promise<Page<AuditEntry>> => keysetPage(entriesOf(db, resource, id), page);

/** What a record was at a time: null when it was not there, undefined when nothing is known of it up to then. */
export async function findState(
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

/** What a record was when it was deleted. */
export async function findLast(db: Knex, resource: Resource, id: string): Promise<Row | undefined> {
  const [entry] = await entriesOf(db, resource, id).orderBy('id', 'desc').limit(1);
  return (entry?.after ?? entry?.before ?? undefined) as Row | undefined;
}

/** Most entries of one request that are given back. */
const MAX_OF_REQUEST = 20_000;

/** Everything that the request did which changed a record last, if it was this actor's. */
export async function listRequest(
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
    .limit(MAX_OF_REQUEST);
}
