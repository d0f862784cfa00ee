import type { Knex } from '../core/knex.ts';
import { EVERY_EVENT } from '../../domain/events/events.ts';
import { PLATFORM } from '../../domain/access/scope.ts';
import type { Ids } from '../../platform/ids.ts';

type Published = { id: string; tenant_id: string; type: string; created_at: Date };
type Match = { event_id: string; webhook_id: string; tenant_id: string };

/** True when events wait for their sequence. */
export async function hasUnpublished(db: Knex): Promise<boolean> {
  return (await db('events').whereNull('sequence').select('id').first()) !== undefined;
}

/**
 * Publishes events that have committed, at most `limit`: gives each the next sequence and, where it matches a webhook,
 * the delivery that it owes, all in one transaction. Whoever holds the head is alone, and what is published becomes
 * visible before the next one reads the head: so no smaller sequence appears later, and every event is matched once.
 *
 * Returns the types of the events, one for each, and how many deliveries they owe. With `lockMs` it fails with SQLSTATE
 * 55P03 when somebody else is at it for longer.
 */
export const publishEvents = (
  db: Knex,
  { limit, now, ids, lockMs }: { limit: number; now: Date; ids: Ids; lockMs?: number },
): Promise<{ types: string[]; deliveries: number }> =>
  db.transaction(async (trx) => {
    if (lockMs !== undefined) await trx.raw(`SET LOCAL lock_timeout = ${lockMs}`);
    const {
      rows: [head],
    } = await trx.raw<{ rows: { sequence: number }[] }>(
      'SELECT sequence FROM event_head FOR UPDATE',
    );
    if (!head) throw new Error('event_head has no row');
    // A statement of its own: its snapshot is taken after the head was locked.
    const { rows } = await trx.raw<{ rows: Published[] }>(
      `WITH batch AS (
         SELECT id, row_number() OVER (ORDER BY id) AS n FROM (SELECT id FROM events WHERE sequence IS NULL ORDER BY id LIMIT ?) AS e
       ), moved AS (
         UPDATE event_head SET sequence = sequence + (SELECT count(*) FROM batch)
       )
       UPDATE events AS e SET sequence = ? + batch.n FROM batch WHERE e.id = batch.id RETURNING e.id, e.tenant_id, e.type, e.created_at`,
      [limit, head.sequence],
    );
    const matches = rows.length === 0 ? [] : await findMatches(trx, rows);
    await insertDeliveries(trx, matches, { now, ids });
    return { types: rows.map(({ type }) => type), deliveries: matches.length };
  });

/**
 * The enabled webhooks that want each event: those of its tenant, and those of the platform, unless they were enabled
 * later (clocks may differ by a second). They stay enabled until the transaction ends: whoever disables one finds all its
 * deliveries.
 */
async function findMatches(trx: Knex.Transaction, events: readonly Published[]): Promise<Match[]> {
  const { rows } = await trx.raw<{ rows: Match[] }>(
    `SELECT e.id AS event_id, w.id AS webhook_id, w.tenant_id
     FROM unnest(?::text[], ?::text[], ?::text[], ?::timestamptz[]) AS e (id, tenant_id, type, created_at)
     JOIN webhooks AS w ON w.enabled AND w.tenant_id IN (e.tenant_id, ?)
       AND e.created_at > w.enabled_at - interval '1 second' AND (e.type = ANY (w.event_types) OR ? = ANY (w.event_types))
     ORDER BY e.id, w.id FOR SHARE OF w`,
    [
      events.map((e) => e.id),
      events.map((e) => e.tenant_id),
      events.map((e) => e.type),
      events.map((e) => e.created_at),
      PLATFORM,
      EVERY_EVENT,
    ],
  );
  return rows;
}

async function insertDeliveries(
  trx: Knex.Transaction,
  matches: readonly Match[],
  { now, ids }: { now: Date; ids: Ids },
): Promise<void> {
  if (matches.length === 0) return;
  await trx.raw(
    `INSERT INTO deliveries (id, tenant_id, webhook_id, event_id, status, owed_at, created_at, updated_at)
     SELECT d.id, d.tenant_id, d.webhook_id, d.event_id, 'pending', ?, ?, ?
     FROM unnest(?::text[], ?::text[], ?::text[], ?::text[]) AS d (id, tenant_id, webhook_id, event_id)`,
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
