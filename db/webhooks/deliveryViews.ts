import type { Knex } from '../core/knex.ts';
import { cutPage, type Page, type PageRequest } from '../core/keyset.ts';
import { scopeCondition } from '../core/scopeSql.ts';
import type { Scope } from '../../domain/access/scope.ts';
import type { DeliveryStatus } from '../../domain/webhooks/webhooks.ts';

/** An attempt as it is shown: times are RFC 3339 text, as JSON of the database has them. */
export type AttemptView = {
  number: number;
  jobId: string;
  startedAt: string;
  finishedAt: string | null;
  durationMs: number | null;
  httpStatus: number | null;
  error: { code: string; message: string } | null;
  requestHeaders: Record<string, string> | null;
  answer: string | null;
  answerTruncated: boolean | null;
};

/** A delivery with its event and its last attempts, oldest first. */
export type DeliveryView = {
  id: string;
  tenantId: string;
  webhookId: string;
  eventId: string;
  eventType: string;
  sequence: number;
  jobId: string | null;
  status: DeliveryStatus;
  reason: string | null;
  createdAt: Date;
  updatedAt: Date;
  attemptCount: number;
  attempts: AttemptView[];
};

type Condition = { sql: string; bindings: readonly Knex.RawBinding[] };

/** How much of the attempts comes with each delivery: a page of them must stay small. */
type Detail = { attempts: number; answerCharacters: number };
const WHOLE: Detail = { attempts: 20, answerCharacters: 1_000_000 };
const LISTED: Detail = { attempts: 5, answerCharacters: 200 };

async function select(
  db: Knex,
  where: Condition,
  limit: number,
  { attempts, answerCharacters }: Detail,
): Promise<DeliveryView[]> {
  const { rows } = await db.raw<{
    rows: (Omit<DeliveryView, 'attempts'> & { attempts: AttemptView[] | null })[];
  }>(
    `SELECT d.id, d.tenant_id AS "tenantId", d.webhook_id AS "webhookId", d.event_id AS "eventId", e.type AS "eventType", e.sequence,
            d.job_id AS "jobId", d.status, d.reason, d.created_at AS "createdAt", d.updated_at AS "updatedAt",
            COALESCE((SELECT max(number) FROM delivery_attempts WHERE delivery_id = d.id), 0) AS "attemptCount", (
              SELECT json_agg(a ORDER BY a.number) FROM (
                SELECT number, job_id AS "jobId", started_at AS "startedAt", finished_at AS "finishedAt", duration_ms AS "durationMs",
                       http_status AS "httpStatus", error, request_headers AS "requestHeaders", left(answer, ?) AS answer,
                       answer_truncated OR length(answer) > ? AS "answerTruncated"
                FROM delivery_attempts WHERE delivery_id = d.id ORDER BY number DESC LIMIT ?
              ) AS a
            ) AS attempts
     FROM deliveries AS d JOIN events AS e ON e.id = d.event_id
     WHERE ${where.sql} ORDER BY d.id DESC LIMIT ?`,
    [answerCharacters, answerCharacters, attempts, ...where.bindings, limit],
  );
  return rows.map((row) => ({ ...row, attempts: row.attempts ?? [] }));
}

/** One page of a webhook's deliveries, newest first. */
export async function pageOfDeliveries(
  db: Knex,
  { webhookId, status }: { webhookId: string; status?: DeliveryStatus | undefined },
  { limit, after }: PageRequest,
): Promise<Page<DeliveryView>> {
  const parts: Condition[] = [
    { sql: 'd.webhook_id = ?', bindings: [webhookId] },
    ...(status === undefined ? [] : [{ sql: 'd.status = ?', bindings: [status] }]),
    ...(after === undefined ? [] : [{ sql: 'd.id < ?', bindings: [after] }]),
  ];
  const rows = await select(
    db,
    {
      sql: parts.map(({ sql }) => sql).join(' AND '),
      bindings: parts.flatMap(({ bindings }) => bindings),
    },
    limit + 1,
    LISTED,
  );
  return cutPage(rows, limit, (row) => row.id);
}

const inScope = (scope: Scope) => scopeCondition(scope, { tenant: 'd.tenant_id' });

/** The deliveries of an event inside `scope`, one for each webhook that was told of it: of more than 1,000 the newest. */
export function deliveriesOf(db: Knex, eventId: string, scope: Scope): Promise<DeliveryView[]> {
  const { sql, bindings } = inScope(scope);
  return select(
    db,
    { sql: `d.event_id = ? AND ${sql}`, bindings: [eventId, ...bindings] },
    1_000,
    LISTED,
  );
}

export async function findDelivery(
  db: Knex,
  id: string,
  scope: Scope,
): Promise<DeliveryView | undefined> {
  const { sql, bindings } = inScope(scope);
  return (
    await select(db, { sql: `d.id = ? AND ${sql}`, bindings: [id, ...bindings] }, 1, WHOLE)
  )[0];
}
