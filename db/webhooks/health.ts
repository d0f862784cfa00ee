import type { Knex } from '../core/knex.ts';
import { prepared } from '../core/prepared.ts';

/**
 * What attempts say about an endpoint of a webhook. `failingSince`: the first failure after the last success;
 * null if none has failed since.
 */
export type WebhookHealth = {
  webhookId: string;
  endpointUrl: string;
  anySucceeded: boolean;
  failingSince: Date | null;
};

/** How long a write waits for a restore that has locked the webhooks, in milliseconds. */
const LOCK_TIMEOUT_MS = 1_000;

/** SQL: the times that differ, as `h`. What an earlier endpoint has answered does not count. */
const CHANGED = `SELECT w.id, h.endpoint_url,
    CASE WHEN h.succeeded THEN h.since ELSE COALESCE(w.failing_since, h.since) END AS failing_since
  FROM unnest(?::text[], ?::text[], ?::boolean[], ?::timestamptz[])
    AS h (id, endpoint_url, succeeded, since)
  JOIN webhooks AS w USING (id, endpoint_url)
  WHERE w.failing_since IS DISTINCT FROM
    CASE WHEN h.succeeded THEN h.since ELSE COALESCE(w.failing_since, h.since) END`;

/**
 * Writes since when webhooks fail. Most attempts change nothing, and then nothing is locked. Error: SQLSTATE
 * 55P03 while a restore has locked the webhooks.
 */
export async function writeHealth(db: Knex, health: readonly WebhookHealth[]): Promise<void> {
  const bindings = [
    health.map(({ webhookId }) => webhookId),
    health.map(({ endpointUrl }) => endpointUrl),
    health.map(({ anySucceeded }) => anySucceeded),
    health.map(({ failingSince }) => failingSince) as unknown as string[],
  ];
  const { rows } = await prepared(db, `${CHANGED} LIMIT 1`, bindings);
  if (rows.length === 0) return;
  await db.transaction(async (trx) => {
    await trx.raw(`SET LOCAL lock_timeout = ${LOCK_TIMEOUT_MS}`);
    await prepared(
      trx,
      `WITH h AS (${CHANGED}), locked AS (
         SELECT id FROM webhooks WHERE id IN (SELECT id FROM h) ORDER BY id FOR NO KEY UPDATE
       )
       UPDATE webhooks AS w SET failing_since = h.failing_since
       FROM h JOIN locked USING (id) WHERE w.id = h.id AND w.endpoint_url = h.endpoint_url`,
      bindings,
    );
  });
}

/**
 * True if the newest delivery that was accepted was accepted after `since`: its process may have died before
 * it wrote that.
 */
export async function wasAcceptedSince(db: Knex, webhookId: string, since: Date): Promise<boolean> {
  const { rows }: { rows: { isLater: boolean }[] } = await prepared(
    db,
    `SELECT updated_at > ? AS "isLater" FROM deliveries
     WHERE webhook_id = ? AND status = 'succeeded' ORDER BY id DESC LIMIT 1`,
    [since, webhookId],
  );
  return rows[0]?.isLater ?? false;
}
