import type { Knex } from '../core/knex.ts';
import { ALL_EVENT_TYPES } from '../../domain/events/events.ts';
import { PLATFORM } from '../../domain/access/scope.ts';
import type { Ids } from '../../platform/ids.ts';

type PublishedEvent = { id: string; tenant_id: string; type: string; created_at: Date };
type WebhookMatch = { event_id: string; webhook_id: string; tenant_id: string };

/** True when committed events have no sequence yet. */
export async function hasUnpublished(db: Knex): Promise<boolean> {
  return (await db('events').whereNull('sequence').select('id').first()) !== undefined;
}

/**
 * Publishes up to `limit` committed events in one transaction: assigns the next sequences and adds
 * a delivery for each matching webhook. The lock of `event_head` admits one process at a time, and
 * a batch is visible before the next process reads the head. So no smaller sequence appears later,
 * and every event is matched exactly once.
 *
 * Returns the type of each event and the number of deliveries. When another process holds the lock
 * for longer than `lockTimeoutMs`, it fails with SQLSTATE 55P03.
 */
export const publishEvents = (
  db: Knex,
  {
    limit,
    now,
    ids,
    lockTimeoutMs,
  }: { limit: number; now: Date; ids: Ids; lockTimeoutMs?: number },
): Promise<{ types: string[]; deliveries: number }> =>
  db.transaction(async (trx) => {
    if (lockTimeoutMs !== undefined) await trx.raw(`SET LOCAL lock_timeout = ${lockTimeoutMs}`);
    const {
      rows: [head],
    } = await trx.raw<{ rows: { sequence: number }[] }>(
      'SELECT sequence FROM event_head FOR UPDATE',
    );
    if (!head) throw new Error('event_head has no row');
    // A separate statement: its snapshot is taken after the head was locked.
    const { rows } = await trx.raw<{ rows: PublishedEvent[] }>(
      `WITH batch AS (
         SELECT id, row_number() OVER (ORDER BY id) AS n
         FROM (SELECT id FROM events WHERE sequence IS NULL ORDER BY id LIMIT ?) AS e
       ), head AS (
         UPDATE event_head SET sequence = sequence + (SELECT count(*) FROM batch)
       )
       UPDATE events AS e SET sequence = ? + batch.n FROM batch WHERE e.id = batch.id
       RETURNING e.id, e.tenant_id, e.type, e.created_at`,
      [limit, head.sequence],
    );
    const matches = rows.length === 0 ? [] : await findMatches(trx, rows);
    await insertDeliveries(trx, matches, { now, ids });
    return { types: rows.map(({ type }) => type), deliveries: matches.length };
  });

/**
 * Finds the enabled webhooks of the event's tenant and of the platform that subscribe to each
 * event. Webhooks that were enabled after the event are excluded, with a tolerance of one second
 * for clocks that differ. The webhooks are locked until the transaction ends: a transaction that
 * disables one waits, and then finds all its deliveries.
 */
async function findMatches(
  trx: Knex.Transaction,
  events: readonly PublishedEvent[],
): Promise<WebhookMatch[]> {
  const { rows } = await trx.raw<{ rows: WebhookMatch[] }>(
    `SELECT e.id AS event_id, w.id AS webhook_id, w.tenant_id
     FROM unnest(?::text[], ?::text[], ?::text[], ?::timestamptz[])
       AS e (id, tenant_id, type, created_at)
     JOIN webhooks AS w ON w.enabled AND w.tenant_id IN (e.tenant_id, ?)
       AND e.created_at > w.enabled_at - interval '1 second'
       AND (e.type = ANY (w.event_types) OR ? = ANY (w.event_types))
     ORDER BY e.id, w.id FOR SHARE OF w`,
    [
      events.map((e) => e.id),
      events.map((e) => e.tenant_id),
      events.map((e) => e.type),
      events.map((e) => e.created_at),
      PLATFORM,
      ALL_EVENT_TYPES,
    ],
  );
  return rows;
}

async function insertDeliveries(
  trx: Knex.Transaction,
  matches: readonly WebhookMatch[],
  { now, ids }: { now: Date; ids: Ids },
): Promise<void> {
  if (matches.length === 0) return;
  await trx.raw(
    `INSERT INTO deliveries
       (id, tenant_id, webhook_id, event_id, status, queued_at, created_at, updated_at)
     SELECT d.id, d.tenant_id, d.webhook_id, d.event_id, 'pending', ?, ?, ?
     FROM unnest(?::text[], ?::text[], ?::text[], ?::text[])
       AS d (id, tenant_id, webhook_id, event_id)`,
    [
      now,
      now,
      now,
      matches.map(() => ids.next('dlv')),
      matches.map((m) => m.tenant_id),
      matches.map((m) => m.webhook_id),
      matches.map((m) => m.event_id),
    ],
  );
}
