import type { Knex } from '../core/knex.ts';
import { prepared } from '../core/prepared.ts';

/**
 * What attempts say about an endpoint of a webhook: when it has last accepted one, and its first failure after
 * that.
 */
export type WebhookHealth = {
  webhookId: string;
  endpointUrl: string;
  succeededAt: Date | null;
  failedAt: Date | null;
};

/** How long a write waits for a restore that has locked the webhooks, in milliseconds. */
const LOCK_TIMEOUT_MS = 1_000;

const HEALTH = `unnest(?::text[], ?::text[], ?::timestamptz[], ?::timestamptz[])
  AS h (id, endpoint_url, succeeded_at, failed_at)`;

/** SQL: since when the webhook `w` fails, with what `h` says; other processes may have written later signs. */
const FAILING_SINCE = `CASE
  WHEN h.failed_at IS NULL THEN CASE WHEN w.failing_since > h.succeeded_at THEN w.failing_since END
  WHEN w.failing_since > h.succeeded_at OR h.succeeded_at IS NULL AND w.failing_since IS NOT NULL
    THEN LEAST(w.failing_since, h.failed_at)
  WHEN (SELECT d.updated_at FROM deliveries AS d WHERE d.webhook_id = w.id AND d.status = 'succeeded'
        ORDER BY d.id DESC LIMIT 1) > h.failed_at THEN NULL
  ELSE h.failed_at END`;

/** SQL: `h` changes the webhook `w`. What an earlier endpoint has answered does not count. */
const IS_CHANGED = `w.id = h.id AND w.endpoint_url = h.endpoint_url
  AND w.failing_since IS DISTINCT FROM ${FAILING_SINCE}`;

/**
 * Writes since when webhooks fail. Most attempts change nothing, and then nothing is locked. Returns the ids of
 * webhooks that another transaction has locked: they are to be written later. Error: SQLSTATE 55P03
 * while a restore has locked all webhooks.
 */
export async function writeHealth(
  db: Knex,
  health: readonly WebhookHealth[],
): Promise<Set<string>> {
  const bindings = [
    health.map(({ webhookId }) => webhookId),
    health.map(({ endpointUrl }) => endpointUrl),
    health.map(({ succeededAt }) => succeededAt) as unknown as string[],
    health.map(({ failedAt }) => failedAt) as unknown as string[],
  ];
  const { rows }: { rows: { id: string }[] } = await prepared(
    db,
    `SELECT DISTINCT w.id FROM ${HEALTH} JOIN webhooks AS w ON ${IS_CHANGED}`,
    bindings,
  );
  const ids = rows.map(({ id }) => id);
  if (ids.length === 0) return new Set();
  const left = await db.transaction(async (trx) => {
    await trx.raw(`SET LOCAL lock_timeout = ${LOCK_TIMEOUT_MS}`);
    const free: string[] = await trx('webhooks')
      .whereIn('id', ids)
      .orderBy('id')
      .forNoKeyUpdate()
      .skipLocked()
      .pluck('id');
    await prepared(
      trx,
      `UPDATE webhooks AS w SET failing_since = ${FAILING_SINCE} FROM ${HEALTH}
       WHERE ${IS_CHANGED} AND w.id = ANY (?::text[])`,
      [...bindings, free],
    );
    return ids.filter((id) => !free.includes(id));
  });
  return new Set(left);
}

/** How many of the newest accepted deliveries are read: an older one may have been sent again. */
const MAX_READ = 1_000;

/**
 * When a webhook has last accepted a delivery, if that was more than a minute after `since`: a process that dies
 * does not write that its webhook works again. Null if there was none.
 */
export async function acceptedAfter(
  db: Knex,
  webhookId: string,
  since: Date,
): Promise<Date | null> {
  const { rows }: { rows: { at: Date | null }[] } = await prepared(
    db,
    `SELECT max(updated_at) FILTER (WHERE updated_at > ?::timestamptz + interval '1 minute') AS at FROM (
       SELECT updated_at FROM deliveries WHERE webhook_id = ? AND status = 'succeeded'
       ORDER BY id DESC LIMIT ?
     ) AS newest`,
    [since, webhookId, MAX_READ],
  );
  return rows[0]?.at ?? null;
}
