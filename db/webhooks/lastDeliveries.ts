import type { DeliveryStatus } from '../../domain/webhooks/webhooks.ts';
import type { Knex } from '../core/knex.ts';

/** The newest delivery of a webhook, with the outcome of its last attempt. */
export type LastDelivery = {
  webhookId: string;
  id: string;
  status: DeliveryStatus;
  reason: string | null;
  updatedAt: Date;
  httpStatus: number | null;
  errorCode: string | null;
};

/** The newest delivery of each of these webhooks that has one. */
export async function findLastDeliveries(
  db: Knex,
  webhookIds: readonly string[],
): Promise<LastDelivery[]> {
  if (webhookIds.length === 0) return [];
  const { rows } = await db.raw<{ rows: LastDelivery[] }>(
    `SELECT w.id AS "webhookId", d.id, d.status, d.reason, d.updated_at AS "updatedAt",
            a.http_status AS "httpStatus", a.error ->> 'code' AS "errorCode"
     FROM unnest(?::text[]) AS w (id)
     CROSS JOIN LATERAL (
       SELECT id, status, reason, updated_at FROM deliveries
       WHERE webhook_id = w.id ORDER BY id DESC LIMIT 1
     ) AS d
     LEFT JOIN LATERAL (
       SELECT http_status, error FROM delivery_attempts
       WHERE delivery_id = d.id ORDER BY number DESC LIMIT 1
     ) AS a ON true`,
    [[...webhookIds]],
  );
  return rows;
}
