import { raw, type QueryBuilder } from 'objection';
import type { Knex } from '../core/knex.ts';
import { readBounded } from '../core/boundedRows.ts';
import { whereDefined, type KeysetPage } from '../core/keyset.ts';
import { columnOf, conditionSql, LONGEST_COMMIT_MS } from '../core/listConditions.ts';
import { readCounts } from '../core/lists.ts';
import { Event } from '../models/Event.ts';
import { whereInScope } from '../core/scopeSql.ts';
import { allOf, type Sql } from '../core/sql.ts';
import {
  MAX_COUNTED,
  type ListAnswer,
  type ListCondition,
  type ListRequest,
} from '../../domain/shared/lists.ts';
import type { PublishedEvent, StoredEvent } from '../../domain/events/records.ts';
import type { Scope } from '../../domain/access/scope.ts';

/** Which events a list shows. */
export type EventFilter = {
  where: readonly ListCondition[];
  subjectType?: string;
  subjectId?: string;
};

/** A page of events after a sequence, oldest first, or before one, newest first. */
export type EventPageRequest = { limit: number } & (
  { order: 'oldest'; after: number } | { order: 'newest'; before: number | undefined }
);

/**
 * A page, and the sequence up to which the log was searched. A follower continues after it,
 * whatever the filter excluded. `head` is the last sequence at that time.
 */
export type EventLogPage = KeysetPage<StoredEvent> & { lastSequence: number; head: number };

/**
 * Sequences are in the order of creation times, except within this interval: the clocks of
 * processes differ, and an event gets its sequence only after its commit.
 */
const SEQUENCE_SKEW_MS = 300_000;

/** The last sequence that was assigned. */
export async function readLastSequence(db: Knex): Promise<number> {
  return (await db('event_head').first<{ sequence: number }>()).sequence;
}

/** The first sequence from this one on that an event has; undefined if there is none. */
export async function firstSequenceFrom(db: Knex, sequence: number): Promise<number | undefined> {
  const event = await Event.query(db)
    .select('sequence')
    .where('sequence', '>=', sequence)
    .orderBy('sequence')
    .first();
  return event?.sequence ?? undefined;
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

/**
 * SQL: a sequence that is smaller than that of every event created at a time or later. The binding
 * is `skewBefore(time)`. The smallest sequence of the earlier events counts: a long restore may have
 * been assigned a much later one than the others.
 */
const SEQUENCE_BEFORE = `COALESCE((
  SELECT min(sequence) FROM (
    SELECT sequence FROM events WHERE sequence IS NOT NULL AND created_at < ?
    ORDER BY created_at DESC LIMIT 100) AS earlier), 0)`;

const skewBefore = (timeMs: number): Date => new Date(timeMs - SEQUENCE_SKEW_MS);

/** Conditions on the time of creation, which also narrow the sequence. */
function createdAtSql(condition: ListCondition, head: number): Sql {
  const { operator, values } = condition;
  const time = Date.parse(String(values[0]));
  const created = conditionSql('created_at', condition);
  const sequence: Sql =
    operator === 'gte' || operator === 'gt'
      ? { sql: `sequence > ${SEQUENCE_BEFORE}`, bindings: [skewBefore(time)] }
      : {
          sql: `sequence <= COALESCE((
             SELECT sequence FROM events WHERE sequence IS NOT NULL AND created_at >= ?
             ORDER BY created_at LIMIT 1), ?::bigint)`,
          bindings: [new Date(time + LONGEST_COMMIT_MS), head],
        };
  return allOf([created, sequence]);
}

/** The events inside `scope` up to the sequence `head`. */
function publishedEvents(
  db: Knex,
  scope: Scope,
  { where, subjectType, subjectId }: EventFilter,
  head: number,
): QueryBuilder<Event> {
  const query = Event.query(db).where('sequence', '<=', head);
  whereInScope(query, scope);
  whereDefined(query, { subject_type: subjectType, subject_id: subjectId });
  for (const condition of where) {
    const { sql, bindings } =
      condition.field === 'createdAt'
        ? createdAtSql(condition, head)
        : conditionSql(columnOf(condition.field), condition);
    void query.whereRaw(sql, bindings);
  }
  return query;
}

/** What a request asks to count of the events after a sequence. */
export const countEvents = (
  db: Knex,
  scope: Scope,
  { filter, after, head }: { filter: EventFilter; after: number; head: number },
  request: Pick<ListRequest, 'count' | 'facets'>,
): Promise<Pick<ListAnswer<unknown>, 'count' | 'facets'>> =>
  readCounts(db, { ...request, where: filter.where }, (where, field) =>
    publishedEvents(db, scope, { ...filter, where }, head)
      .where('sequence', '>', after)
      .select(raw(field === undefined ? 'id' : `${columnOf(field)} AS value, id`))
      .orderBy('sequence', 'desc')
      .limit(MAX_COUNTED + 1)
      .toKnexQuery(),
  );

/** A page of published events inside `scope`. */
export async function listEvents(
  db: Knex,
  scope: Scope,
  filter: EventFilter,
  page: EventPageRequest,
): Promise<EventLogPage> {
  // Read first: events that are published between the two statements are not covered.
  const head = await readLastSequence(db);
  const query = publishedEvents(db, scope, filter, head);
  if (page.order === 'oldest') void query.where('sequence', '>', page.after).orderBy('sequence');
  else void query.where('sequence', '<', page.before ?? head + 1).orderBy('sequence', 'desc');
  const { items, hasMore } = await readBounded(query, page.limit);
  const last = hasMore ? items.at(-1) : undefined;
  return {
    items,
    nextKey: last ? String(last.sequence) : null,
    head,
    lastSequence: last && page.order === 'oldest' ? Number(last.sequence) : head,
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
    // The first event by time need not have the smallest sequence: all events of a large write are
    // as old as its start, and are published after events that others have created since.
    `SELECT min(sequence) - 1 AS sequence FROM events
     WHERE created_at >= ? AND sequence > ${SEQUENCE_BEFORE} AND sequence <= (
       SELECT sequence FROM events WHERE sequence IS NOT NULL AND created_at >= ?
       ORDER BY created_at LIMIT 1)`,
    [time, skewBefore(time.getTime()), time],
  );
  return row?.sequence ?? readLastSequence(db);
}
