import type { Knex } from '../core/knex.ts';
import { prepared } from '../core/prepared.ts';

/**
 * Publishes up to `limit` committed events in one call: assigns the next sequences and adds a delivery
 * for each enabled webhook of the event's tenant and of the platform that subscribes to it. Webhooks
 * that were enabled after the event are excluded, with a tolerance of one second for clocks that
 * differ. The function `publish_events` is in the schema.
 *
 * The lock of `event_head` admits one process at a time, and a batch is visible before the next process
 * reads the head. So no smaller sequence appears later, and every event is matched exactly once. The
 * webhooks are locked too: a transaction that disables one waits, and then finds all its deliveries.
 *
 * Returns the type of each event and the number of deliveries. When another process holds the lock
 * for longer than `lockTimeoutMs`, it fails with SQLSTATE 55P03.
 */
export async function publishEvents(
  db: Knex,
  { limit, now, lockTimeoutMs }: { limit: number; now: Date; lockTimeoutMs?: number },
): Promise<{ types: string[]; deliveries: number }> {
  const { rows }: { rows: { types: string[]; deliveries: number }[] } = await prepared(
    db,
    'SELECT types, delivery_count AS deliveries FROM publish_events(?::int, ?::int, ?::timestamptz)',
    [limit, lockTimeoutMs ?? null, now],
  );
  return rows[0] ?? { types: [], deliveries: 0 };
}
