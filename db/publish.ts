import type { Knex } from './knex.ts';
import { EVERY_EVENT } from '../domain/events.ts';
import type { Ids } from '../platform/ids.ts';

type Published = { id: string; tenant_id: string; type: string };
type Match = { event_id: string; webhook_id: string; tenant_id: string };

/** True when events wait for their sequence. */
export async function hasUnpublished(db: Knex): Promise<boolean> {
  return (await db('events').whereNull('sequence').select('id').first()) !== undefined;
}

/**
 * Publishes events that have committed, at most `limit`: gives each the next sequence and, where it matches a webhook,
 * the delivery that it owes, all in one transaction. Whoever holds the head is alone, and what is published becomes
 * visible before the next one reads the head: so no smaller sequence appears later, and every event is matched once.
 */
export const publishEvents = (
  db: Knex, { limit, now, ids }: { limit: number; now: Date; ids: Ids },
): Promise<{ events: number; deliveries: number }> =>
  db.transaction(async (trx) => {
    const { rows: [head] } = await trx.raw<{ rows: { sequence: number }[] }>('SELECT sequence FROM event_head FOR UPDATE');
    if (!head) throw new Error('event_head has no row');
    // A statement of its own: its snapshot is taken after the head was locked.
    const { rows } = await trx.raw<{ rows: Published[] }>(
      `WITH batch AS (
         SELECT id, row_number() OVER (ORDER BY id) AS n FROM (SELECT id FROM events WHERE sequence IS NULL ORDER BY id LIMIT ?) AS e
       ), moved AS (
         UPDATE event_head SET sequence = sequence + (SELECT count(*) FROM batch)
       )
       UPDATE events AS e SET sequence = ? + batch.n FROM batch WHERE e.id = batch.id RETURNING e.id, e.tenant_id, e.type`,
      [limit, head.sequence],
    );
    const matches = rows.length === 0 ? [] : await findMatches(trx, rows);
    await insertDeliveries(trx, matches, { now, ids });
    return { events: rows.length, deliveries: matches.length };
  });

/**
 * The enabled webhooks that want each event: those of its tenant, and those of the platform. They stay enabled until the
 * transaction ends: whoever disables one finds all its deliveries.
 */
async function findMatches(trx: Knex.Transaction, events: readonly Published[]): Promise<Match[]> {
  const { rows } = await trx.raw<{ rows: Match[] }>(
    `SELECT e.id AS event_id, w.id AS webhook_id, w.tenant_id
     FROM unnest(?::text[], ?::text[], ?::text[]) AS e (id, tenant_id, type)
     JOIN webhooks AS w ON w.enabled AND w.tenant_id IN (e.tenant_id, 'platform')
       AND (e.type = ANY (w.event_types) OR ? = ANY (w.event_types))
     ORDER BY e.id, w.id FOR SHARE OF w`,
    [events.map((e) => e.id), events.map((e) => e.tenant_id), events.map((e) => e.type), EVERY_EVENT],
  );
  return rows;
}

async function insertDeliveries(trx: Knex.Transaction, matches: readonly Match[], { now, ids }: { now: Date; ids: Ids }): Promise<void> {
  if (matches.length === 0) return;
  await trx.raw(
    `INSERT INTO deliveries (id, tenant_id, webhook_id, event_id, status, created_at, updated_at)
     SELECT d.id, d.tenant_id, d.webhook_id, d.event_id, 'pending', ?, ?
     FROM unnest(?::text[], ?::text[], ?::text[], ?::text[]) AS d (id, tenant_id, webhook_id, event_id)`,
    [now, now, matches.map(() => ids.next('dlv')), matches.map((m) => m.tenant_id), matches.map((m) => m.webhook_id), matches.map((m) => m.event_id)],
  );
}

type Replay = { webhook: { id: string; tenantId: string; eventTypes: string[] }; jobId: string; after: number; upTo: number; limit: number; now: Date; ids: Ids };

/**
 * Makes the next events that a webhook wants, at most `limit` of those after sequence `after`, owed to it once more:
 * deliveries that have ended are to be made again, missing ones are added, those that are under way stay as they are.
 * What this replay has done already it leaves alone. Returns how many are owed, and up to where it has looked.
 */
export async function replayEvents(
  trx: Knex, { webhook, jobId, after, upTo, limit, now, ids }: Replay,
): Promise<{ owed: number; sequence: number; more: boolean }> {
  const { rows } = await trx.raw<{ rows: { id: string; sequence: number }[] }>(
    `SELECT id, sequence FROM events
     WHERE sequence > ? AND sequence <= ? AND ? IN (tenant_id, 'platform') AND (type = ANY (?::text[]) OR ? = ANY (?::text[]))
     ORDER BY sequence LIMIT ?`,
    [after, upTo, webhook.tenantId, webhook.eventTypes, EVERY_EVENT, webhook.eventTypes, limit],
  );
  const { rowCount } = await trx.raw<{ rowCount: number }>(
    `INSERT INTO deliveries AS d (id, tenant_id, webhook_id, event_id, status, replayed_by, created_at, updated_at)
     SELECT n.id, ?, ?, n.event_id, 'pending', ?, ?, ? FROM unnest(?::text[], ?::text[]) AS n (id, event_id)
     ON CONFLICT (event_id, webhook_id) DO UPDATE SET status = 'pending', job_id = NULL, under_way = false, reason = NULL, replayed_by = excluded.replayed_by, updated_at = excluded.updated_at
       WHERE d.status <> 'pending' AND d.replayed_by IS DISTINCT FROM excluded.replayed_by`,
    [webhook.tenantId, webhook.id, jobId, now, now, rows.map(() => ids.next('dlv')), rows.map((row) => row.id)],
  );
  return { owed: rowCount, sequence: rows.at(-1)?.sequence ?? upTo, more: rows.length === limit };
}

/** A sequence such that no event that was made at `time` or later has it or a smaller one. */
export async function sequenceBefore(db: Knex, time: Date): Promise<number> {
  const { rows: [found] } = await db.raw<{ rows: { sequence: number | null }[] }>(
    // Sequences follow times but for little: the smallest among the first is the smallest of all.
    `SELECT min(sequence) - 1 AS sequence FROM (
       SELECT sequence FROM events WHERE sequence IS NOT NULL AND created_at >= ? ORDER BY created_at LIMIT 1000) AS first`,
    [time],
  );
  return found?.sequence ?? (await db('event_head').first<{ sequence: number }>()).sequence;
}
