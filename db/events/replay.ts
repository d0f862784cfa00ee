import { SHOWN_CLOCK } from '../core/databaseTime.ts';
import type { Knex } from '../core/knex.ts';
import { ALL_EVENT_TYPES } from '../../domain/events/events.ts';
import { PLATFORM } from '../../domain/access/scope.ts';
import type { Ids } from '../../platform/ids.ts';

type ReplayBatch = {
  webhook: { id: string; tenantId: string; eventTypes: string[] };
  jobId: string;
  after: number;
  upTo: number;
  limit: number;
  ids: Ids;
};

/**
 * Queues deliveries of the next events that a webhook subscribes to: up to `limit` events with a
 * sequence greater than `after` and at most `upTo`. Missing deliveries are added. Deliveries that
 * have finished, wait for a retry or are being cancelled are queued again and get a new job.
 * Deliveries in flight, and those that this replay queued before, do not change.
 *
 * Returns how many deliveries it has queued, and how many of these events this replay has queued, with those
 * of its earlier attempts; the sequence of the last event, and whether more events follow.
 */
export async function replayEvents(
  trx: Knex,
  { webhook, jobId, after, upTo, limit, ids }: ReplayBatch,
): Promise<{ queued: number; deliveries: number; sequence: number; more: boolean }> {
  const { rows: found } = await trx.raw<{ rows: { id: string; sequence: number }[] }>(
    `SELECT id, sequence FROM events
     WHERE sequence > ? AND sequence <= ? AND ? IN (tenant_id, ?)
       AND (type = ANY (?::text[]) OR ? = ANY (?::text[]))
     ORDER BY sequence LIMIT ?`,
    [
      after,
      upTo,
      webhook.tenantId,
      PLATFORM,
      webhook.eventTypes,
      ALL_EVENT_TYPES,
      webhook.eventTypes,
      limit + 1,
    ],
  );
  const rows = found.slice(0, limit);
  const eventIds = rows.map(({ id }) => id);
  const { rowCount } = await trx.raw<{ rowCount: number }>(
    `INSERT INTO deliveries AS d
       (id, tenant_id, webhook_id, event_id, status, replay_job_id,
        queued_at, created_at, updated_at)
     SELECT n.id, ?, ?, n.event_id, 'pending', ?, clock.now, clock.now, clock.now
     FROM unnest(?::text[], ?::text[]) AS n (id, event_id), (SELECT ${SHOWN_CLOCK} AS now) AS clock
     ON CONFLICT (event_id, webhook_id) DO UPDATE
       SET status = 'pending', job_id = NULL, in_flight = false, leased_until = NULL, reason = NULL,
           replay_job_id = excluded.replay_job_id,
           queued_at = excluded.queued_at, updated_at = excluded.updated_at
       WHERE NOT (d.status = 'pending' AND d.in_flight AND d.reason IS NULL)
         AND d.replay_job_id IS DISTINCT FROM excluded.replay_job_id`,
    [webhook.tenantId, webhook.id, jobId, rows.map(() => ids.next('dlv')), eventIds],
  );
  return {
    queued: rowCount,
    deliveries:
      rowCount === rows.length ? rowCount : await countQueued(trx, webhook.id, jobId, eventIds),
    sequence: rows.at(-1)?.sequence ?? upTo,
    more: found.length > limit,
  };
}

/** How many of these events a replay has queued. */
async function countQueued(
  trx: Knex,
  webhookId: string,
  jobId: string,
  eventIds: readonly string[],
): Promise<number> {
  const { rows } = await trx.raw<{ rows: [{ count: number }] }>(
    `SELECT count(*) FROM deliveries
     WHERE event_id = ANY (?::text[]) AND webhook_id = ? AND replay_job_id = ?`,
    [[...eventIds], webhookId, jobId],
  );
  return rows[0].count;
}
