import type { Knex } from '../core/knex.ts';
import { prepared } from '../core/prepared.ts';
import { bindArray } from '../core/sql.ts';

/**
 * What attempts say about an endpoint of a webhook: when it has last accepted one, and its first failure after
 * that; when it has last answered usably, and the first attempt after that to which it did not.
 */
export type WebhookHealth = {
  webhookId: string;
  endpointUrl: string;
  succeededAt: Date | null;
  failedAt: Date | null;
  answeredAt: Date | null;
  unansweredAt: Date | null;
};

/** How long a write waits for a restore that has locked the webhooks, in milliseconds. */
const LOCK_TIMEOUT_MS = 1_000;

const HEALTH = `unnest(?::text[], ?::text[], ?::timestamptz[], ?::timestamptz[], ?::timestamptz[], ?::timestamptz[])
  AS h (id, endpoint_url, succeeded_at, failed_at, answered_at, unanswered_at)`;

/**
 * SQL: the column of the webhook `w` that says since when there were only bad signs, with the last good one and the
 * first bad one after it that `h` has; other processes may have written later signs.
 */
const sinceSql = (column: string, good: string, bad: string) => `CASE
  WHEN ${bad} IS NULL THEN CASE WHEN ${good} IS NULL OR ${column} > ${good} THEN ${column} END
  WHEN ${column} > ${good} OR ${good} IS NULL AND ${column} IS NOT NULL THEN LEAST(${column}, ${bad})
  WHEN (SELECT d.updated_at FROM deliveries AS d WHERE d.webhook_id = w.id AND d.status = 'succeeded'
        ORDER BY d.id DESC LIMIT 1) > ${bad} THEN NULL
  ELSE ${bad} END`;

const FAILING_SINCE = sinceSql('w.failing_since', 'h.succeeded_at', 'h.failed_at');
const UNREACHABLE_SINCE = sinceSql('w.unreachable_since', 'h.answered_at', 'h.unanswered_at');

/** SQL: `h` changes the webhook `w`. What an earlier endpoint has answered does not count. */
const IS_CHANGED = `w.id = h.id AND w.endpoint_url = h.endpoint_url
  AND (w.failing_since IS DISTINCT FROM ${FAILING_SINCE}
    OR w.unreachable_since IS DISTINCT FROM ${UNREACHABLE_SINCE})`;

/** SQL: the columns of a changed webhook. One that is reached again need not wait for its next probe. */
const CHANGED = `failing_since = ${FAILING_SINCE}, unreachable_since = ${UNREACHABLE_SINCE},
  probed_at = CASE WHEN w.unreachable_since IS NULL OR ${UNREACHABLE_SINCE} IS NOT NULL THEN w.probed_at END`;

/**
 * Writes since when webhooks fail, and are unreachable. Most attempts change nothing, and then nothing is locked. Returns the ids of
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
    bindArray(health.map(({ succeededAt }) => succeededAt)),
    bindArray(health.map(({ failedAt }) => failedAt)),
    bindArray(health.map(({ answeredAt }) => answeredAt)),
    bindArray(health.map(({ unansweredAt }) => unansweredAt)),
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
      `UPDATE webhooks AS w SET ${CHANGED} FROM ${HEALTH}
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
