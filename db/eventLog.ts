import type { Knex } from './core/knex.ts';
import { cutPage, whereGiven, type Page } from './core/keyset.ts';
import { Event } from './models/Event.ts';
import { whereInScope } from './core/scopeSql.ts';
import type { Scope } from '../domain/access/scope.ts';

export type EventFilter = {
  type?: readonly string[];
  subjectType?: string;
  subjectId?: string;
  tenantId?: string;
  since?: Date;
  until?: Date;
};

/** Events after a sequence, oldest first, or before one, newest first. */
export type EventPage = { limit: number } & (
  { order: 'oldest'; after: number } | { order: 'newest'; before: number | undefined }
);

/** A page, and up to where the log was looked through: a follower goes on from there, whatever the filter left out. */
export type EventLogPage = Page<Event> & { lastSequence: number };

/** Sequences follow times but for this much: clocks differ, and a commit takes a while. */
const DISORDER_MS = 300_000;

/** The last sequence that was given. */
export async function readHead(db: Knex): Promise<number> {
  return (await db('event_head').first<{ sequence: number }>()).sequence;
}

/** Published events inside `scope`. */
export async function pageOfEvents(
  db: Knex,
  scope: Scope,
  filter: EventFilter,
  page: EventPage,
): Promise<EventLogPage> {
  // Read first: what is published between the two statements is beyond it.
  const head = await readHead(db);
  const query = Event.query(db).where('sequence', '<=', head);
  whereInScope(query, scope);
  whereGiven(query, {
    subject_type: filter.subjectType,
    subject_id: filter.subjectId,
    tenant_id: filter.tenantId,
  });
  if (filter.type) void query.whereIn('type', [...filter.type]);
  if (filter.since) {
    void query
      .where('created_at', '>=', filter.since)
      .whereRaw(
        'sequence > COALESCE((SELECT sequence FROM events WHERE sequence IS NOT NULL AND created_at < ? ORDER BY created_at DESC LIMIT 1), 0)',
        [new Date(filter.since.getTime() - DISORDER_MS)],
      );
  }
  if (filter.until) {
    void query
      .where('created_at', '<', filter.until)
      .whereRaw(
        'sequence <= COALESCE((SELECT sequence FROM events WHERE sequence IS NOT NULL AND created_at >= ? ORDER BY created_at LIMIT 1), ?::bigint)',
        [new Date(filter.until.getTime() + DISORDER_MS), head],
      );
  }
  if (page.order === 'oldest') void query.where('sequence', '>', page.after).orderBy('sequence');
  else void query.where('sequence', '<', page.before ?? head + 1).orderBy('sequence', 'desc');
  const cut = cutPage(await query.limit(page.limit + 1), page.limit, (event) =>
    String(event.sequence),
  );
  return {
    ...cut,
    lastSequence: cut.nextKey !== null && page.order === 'oldest' ? Number(cut.nextKey) : head,
  };
}

/** A sequence such that no event that was made at `time` or later has it or a smaller one. */
export async function sequenceBefore(db: Knex, time: Date): Promise<number> {
  const {
    rows: [found],
  } = await db.raw<{ rows: { sequence: number | null }[] }>(
    // Sequences follow times but for little: the smallest among the first is the smallest of all.
    `SELECT min(sequence) - 1 AS sequence FROM (
       SELECT sequence FROM events WHERE sequence IS NOT NULL AND created_at >= ? ORDER BY created_at LIMIT 1000) AS first`,
    [time],
  );
  return found?.sequence ?? readHead(db);
}
