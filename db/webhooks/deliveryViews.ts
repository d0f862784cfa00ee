import type { Knex } from '../core/knex.ts';
import { createdAtSql } from '../core/listConditions.ts';
import { readList } from '../core/lists.ts';
import { scopeCondition, whereInScope } from '../core/scopeSql.ts';
import { Delivery } from '../models/Delivery.ts';
import { withItems, type ListAnswer, type ListRequest } from '../../domain/shared/lists.ts';
import type { Scope } from '../../domain/access/scope.ts';
import type { JobMark } from '../../domain/jobs/records.ts';
import type { DeliveryStatus } from '../../domain/webhooks/webhooks.ts';

/** An attempt as callers see it. Times are the text that `json_agg` of PostgreSQL produces. */
export type AttemptView = JobMark & {
  number: number;
  jobId: string;
  startedAt: string;
  finishedAt: string | null;
  durationMs: number | null;
  httpStatus: number | null;
  error: { code: string; message: string } | null;
  requestHeaders: Record<string, string> | null;
  responseBody: string | null;
  responseTruncated: boolean | null;
};

/** A delivery as callers see it, with its event and its last attempts, oldest first. */
export type DeliveryView = JobMark & {
  id: string;
  tenantId: string;
  webhookId: string;
  eventId: string;
  eventType: string;
  sequence: number;
  jobId: string | null;
  /** False while its first attempt is made without a workflow, if that was accepted, and if purged. */
  hasWorkflow: boolean;
  status: DeliveryStatus;
  reason: string | null;
  createdAt: Date;
  updatedAt: Date;
  attemptCount: number;
  attempts: AttemptView[];
};

type DeliveryCondition = { sql: string; bindings: readonly Knex.RawBinding[] };

/** How many attempts a delivery shows, and how much of each response: a page must stay small. */
type AttemptDetail = { attempts: number; responseCharacters: number };
const FULL_DETAIL: AttemptDetail = { attempts: 20, responseCharacters: 1_000_000 };
const LIST_DETAIL: AttemptDetail = { attempts: 5, responseCharacters: 200 };

async function selectDeliveries(
  db: Knex,
  where: DeliveryCondition,
  limit: number,
  { attempts, responseCharacters }: AttemptDetail,
): Promise<DeliveryView[]> {
  const { rows } = await db.raw<{
    rows: (Omit<DeliveryView, 'attempts'> & { attempts: AttemptView[] | null })[];
  }>(
    `SELECT d.id, d.tenant_id AS "tenantId", d.webhook_id AS "webhookId", d.event_id AS "eventId",
            e.type AS "eventType", e.sequence, d.job_id AS "jobId", d.status, d.reason,
            d.created_at AS "createdAt", d.updated_at AS "updatedAt",
            d.job_id IS NOT NULL AND j.id IS NULL AS "jobPurged",
            j.id IS NOT NULL AND NOT (j.run_id IS NULL
              AND (d.leased_until IS NOT NULL OR d.status = 'succeeded')) AS "hasWorkflow",
            COALESCE(
              (SELECT max(number) FROM delivery_attempts WHERE delivery_id = d.id), 0
            ) AS "attemptCount",
            (
              SELECT json_agg(a ORDER BY a.number) FROM (
                SELECT number, job_id AS "jobId",
                       NOT EXISTS (SELECT FROM jobs WHERE id = job_id) AS "jobPurged",
                       started_at AS "startedAt",
                       finished_at AS "finishedAt", duration_ms AS "durationMs",
                       http_status AS "httpStatus", error, request_headers AS "requestHeaders",
                       left(response_body, ?) AS "responseBody",
                       response_truncated OR length(response_body) > ? AS "responseTruncated"
                FROM delivery_attempts WHERE delivery_id = d.id ORDER BY number DESC LIMIT ?
              ) AS a
            ) AS attempts
     FROM deliveries AS d JOIN events AS e ON e.id = d.event_id
       LEFT JOIN jobs AS j ON j.id = d.job_id
     WHERE ${where.sql} ORDER BY d.id DESC LIMIT ?`,
    [responseCharacters, responseCharacters, attempts, ...where.bindings, limit],
  );
  return rows.map((row) => ({ ...row, attempts: row.attempts ?? [] }));
}

/**
 * The time in an id is that of the event, by the clock of the process that created it. The delivery is
 * created when the event is published, which may be much later, or replayed.
 */
const CREATED_AT = { toleranceMs: 60_000, earlierIds: true };

/** Lists the deliveries inside `scope`. */
export async function listDeliveries(
  db: Knex,
  scope: Scope,
  request: ListRequest,
): Promise<ListAnswer<DeliveryView>> {
  const answer = await readList(
    {
      db,
      visible() {
        const query = Delivery.query(db).select('id');
        whereInScope(query, scope);
        return query;
      },
      condition: (condition) =>
        condition.field === 'createdAt' ? createdAtSql('dlv', condition, CREATED_AT) : undefined,
    },
    request,
  );
  const ids = answer.items.map(({ id }) => id);
  if (ids.length === 0) return withItems(answer, []);
  const found = await selectDeliveries(
    db,
    { sql: 'd.id = ANY (?::text[])', bindings: [ids] },
    ids.length,
    LIST_DETAIL,
  );
  const byId = new Map(found.map((delivery) => [delivery.id, delivery]));
  return withItems(
    answer,
    ids.flatMap((id) => byId.get(id) ?? []),
  );
}

const scopeFilter = (scope: Scope) => scopeCondition(scope, { tenant: 'd.tenant_id' });

/** The deliveries of an event inside `scope`, one for each webhook; the newest 1,000 at most. */
export function listDeliveriesOfEvent(
  db: Knex,
  eventId: string,
  scope: Scope,
): Promise<DeliveryView[]> {
  const { sql, bindings } = scopeFilter(scope);
  return selectDeliveries(
    db,
    { sql: `d.event_id = ? AND ${sql}`, bindings: [eventId, ...bindings] },
    1_000,
    LIST_DETAIL,
  );
}

/** A delivery inside `scope` with its last 20 attempts, or undefined. */
export async function findDelivery(
  db: Knex,
  id: string,
  scope: Scope,
): Promise<DeliveryView | undefined> {
  const { sql, bindings } = scopeFilter(scope);
  return (
    await selectDeliveries(
      db,
      { sql: `d.id = ? AND ${sql}`, bindings: [id, ...bindings] },
      1,
      FULL_DETAIL,
    )
  )[0];
}
