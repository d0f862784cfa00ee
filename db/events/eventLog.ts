import type { Knex } from '../core/knex.ts';
import { cutPage, whereDefined, type KeysetPage } from '../core/keyset.ts';
import { Event } from '../models/Event.ts';
import { whereInScope } from '../core/scopeSql.ts';
import type { PublishedEvent, StoredEvent } from '../../domain/events/records.ts';
import type { Scope } from '../../domain/access/scope.ts';

/** Which events a list shows; `since` is inclusive, `until` exclusive. */
export type EventFilter = {
  type?: readonly string[];
  subjectType?: string;
  subjectId?: string;
  tenantId?: string;
  since?: Date;
  until?: Date;
};

/** A page of events after a sequence, oldest first, or before one, newest first. */
export type EventPageRequest = { limit: number } & (
  { order: 'oldest'; after: number } | { order: 'newest'; before: number | undefined }
);

/**
 * A page, and the sequence up to which the log was searched. A follower continues after it,
 * whatever the filter excluded.
 */
export type EventLogPage = KeysetPage<StoredEvent> & { lastSequence: number };

/**
 * Sequences are in the order of creation times, except within this interval: the clocks of
 * processes differ, and an event gets its sequence only after its commit.
 */
const SEQUENCE_SKEW_MS = 300_000;

/** The last sequence that was assigned. */
export async function readLastSequence(db: Knex): Promise<number> {
  return (await db('event_head').first<{ sequence: number }>()).sequence;
}

/** Published events of all tenants after a sequence, oldest first, at most `limit`. */
export async function listPublishedAfter(
  db: Knex,
  sequence: number,
  limit: number,
): Promise<PublishedEvent[]> {
  const events: unknown = await Event.query(db)
    .where('sequence', '>', sequence)
    .orderBy('sequence')
    .limit(limit);
  // The condition excludes events without a sequence.
  return events as PublishedEvent[];
}

/** A page of published events inside `scope`. */
export async function listEvents(
  db: Knex,
  scope: Scope,
  filter: EventFilter,
  page: EventPageRequest,
): Promise<EventLogPage> {
  // Read first: events that are published between the two statements are not covered.
  const head = await readLastSequence(db);
  const query = Event.query(db).where('sequence', '<=', head);
  whereInScope(query, scope);
  whereDefined(query, {
    subject_type: filter.subjectType,
    subject_id: filter.subjectId,
    tenant_id: filter.tenantId,
  });
  if (filter.type) void query.whereIn('type', [...filter.type]);
  if (filter.since) {
    void query.where('created_at', '>=', filter.since).whereRaw(
      `sequence > COALESCE((
           SELECT sequence FROM events WHERE sequence IS NOT NULL AND created_at < ?
           ORDER BY created_at DESC LIMIT 1), 0)`,
      [new Date(filter.since.getTime() - SEQUENCE_SKEW_MS)],
    );
  }
  if (filter.until) {
    void query.where('created_at', '<', filter.until).whereRaw(
      `sequence <= COALESCE((
           SELECT sequence FROM events WHERE sequence IS NOT NULL AND created_at >= ?
           ORDER BY created_at LIMIT 1), ?::bigint)`,
      [new Date(filter.until.getTime() + SEQUENCE_SKEW_MS), head],
    );
  }
  if (page.order === 'oldest') void query.where('sequence', '>', page.after).orderBy('sequence');
  else void query.where('sequence', '<', page.before ?? head + 1).orderBy('sequence', 'desc');
  const result = cutPage(await query.limit(page.limit + 1), page.limit, (event) =>
    String(event.sequence),
  );
  return {
    ...result,
    lastSequence:
      result.nextKey !== null && page.order === 'oldest' ? Number(result.nextKey) : head,
  };
}

/** A published event inside `scope`, or undefined. */
export async function findEvent(db: Knex, id: string, scope: Scope): Promise<Event | undefined> {
  const query = Event.query(db).findById(id).whereNotNull('sequence');
  whereInScope(query, scope);
  return query;
}

/** The largest sequence that is smaller than that of every event created at `time` or later. */
export async function sequenceBefore(db: Knex, time: Date): Promise<number> {
  const {
    rows: [row],
  } = await db.raw<{ rows: { sequence: number | null }[] }>(
    // Sequences nearly follow creation times: the first 1,000 events contain the smallest sequence.
    `SELECT min(sequence) - 1 AS sequence FROM (
       SELECT sequence FROM events WHERE sequence IS NOT NULL AND created_at >= ?
       ORDER BY created_at LIMIT 1000) AS first`,
    [time],
  );
  return row?.sequence ?? readLastSequence(db);
}
