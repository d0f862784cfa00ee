import { SHOWN_CLOCK } from '../core/databaseTime.ts';
import type { Knex } from '../core/knex.ts';
import { prepared } from '../core/prepared.ts';

/** A batch of events. `lockTimeoutMs`: how long it may wait for another process that publishes. */
export type PublishBatch = {
  limit: number;
  maxDeliveries: number;
  lockTimeoutMs?: number;
};

/** The type of each published event, and the number of deliveries. `areLeft`: others are to be added. */
export type Published = { types: string[]; deliveries: number; areLeft: boolean };

/**
 * Publishes up to `limit` committed events in one call: assigns the next sequences, in the order in which the events
 * were written. Then adds up to `maxDeliveries` deliveries of published events, of each tenant in turn: one for each
 * enabled webhook of the event's tenant and of the platform that subscribes to it, unless the event was published
 * before the webhook was enabled. The call takes a bounded time, however many webhooks an event matches; the next one
 * goes on. With a `maxDeliveries` of 0 it only assigns sequences, and waits for no other process if all events have
 * theirs. The function `publish_batch` is in the schema.
 *
 * The lock of `event_head` admits one process at a time, and a batch is visible before the next process
 * reads the head. So no smaller sequence appears later, and every event is matched exactly once. The
 * webhooks are locked too: a transaction that disables one waits, and then finds all its deliveries;
 * later ones are not added. A webhook that another transaction has locked gets its deliveries later.
 *
 * When another process holds the lock for longer than `lockTimeoutMs`, it fails with SQLSTATE 55P03.
 */
export async function publishEvents(
  db: Knex,
  { limit, maxDeliveries, lockTimeoutMs }: PublishBatch,
): Promise<Published> {
  const { rows }: { rows: Published[] } = await prepared(
    db,
    `SELECT types, delivery_count AS deliveries, is_left AS "areLeft"
     FROM publish_batch(?::int, ?::int, ?::int, ${SHOWN_CLOCK})`,
    [limit, maxDeliveries, lockTimeoutMs ?? null],
  );
  return rows[0] ?? { types: [], deliveries: 0, areLeft: false };
}
