import type { Knex } from './core/knex.ts';
import { EVERY_EVENT } from '../domain/events/events.ts';
import { PLATFORM } from '../domain/access/scope.ts';
import type { Ids } from '../platform/ids.ts';

type Replay = {
  webhook: { id: string; tenantId: string; eventTypes: string[] };
  jobId: string;
  after: number;
  upTo: number;
  limit: number;
  now: Date;
  ids: Ids;
};

/**
 * Makes the next events that a webhook wants, at most `limit` of those after sequence `after`, owed to it once more:
 * missing deliveries are added; those that have ended, wait for their next attempt or are about to be cancelled are to be
 * made now, with a new job; those that are being sent stay as they are. What this replay has done already it leaves alone.
 * Returns how many are owed, and up to where it has looked.
 */
export async function replayEvents(
  trx: Knex,
  { webhook, jobId, after, upTo, limit, now, ids }: Replay,
): Promise<{ owed: number; sequence: number; more: boolean }> {
  const { rows } = await trx.raw<{ rows: { id: string; sequence: number }[] }>(
    `SELECT id, sequence FROM events
     WHERE sequence > ? AND sequence <= ? AND ? IN (tenant_id, ?) AND (type = ANY (?::text[]) OR ? = ANY (?::text[]))
     ORDER BY sequence LIMIT ?`,
    [
      after,
      upTo,
      webhook.tenantId,
      PLATFORM,
      webhook.eventTypes,
      EVERY_EVENT,
      webhook.eventTypes,
      limit,
    ],
  );
  const { rowCount } = await trx.raw<{ rowCount: number }>(
    `INSERT INTO deliveries AS d (id, tenant_id, webhook_id, event_id, status, replayed_by, owed_at, created_at, updated_at)
     SELECT n.id, ?, ?, n.event_id, 'pending', ?, ?, ?, ? FROM unnest(?::text[], ?::text[]) AS n (id, event_id)
     ON CONFLICT (event_id, webhook_id) DO UPDATE
       SET status = 'pending', job_id = NULL, under_way = false, reason = NULL, replayed_by = excluded.replayed_by,
           owed_at = excluded.owed_at, updated_at = excluded.updated_at
       WHERE NOT (d.status = 'pending' AND d.under_way AND d.reason IS NULL) AND d.replayed_by IS DISTINCT FROM excluded.replayed_by`,
    [
      webhook.tenantId,
      webhook.id,
      jobId,
      now,
      now,
      now,
      rows.map(() => ids.next('dlv')),
      rows.map((row) => row.id),
    ],
  );
  return { owed: rowCount, sequence: rows.at(-1)?.sequence ?? upTo, more: rows.length === limit };
}
