import { MAX_POSITION, type TenantQueue } from '../../domain/jobs/queue.ts';
import type { Knex } from '../core/knex.ts';
import { prepared } from '../core/prepared.ts';

/**
 * The queues of all tenants; each is counted up to `limit`. The recursive part is a loose index scan
 * of `jobs_queued`: one index probe for each tenant with queued jobs, however many jobs wait.
 */
export async function readQueues(db: Knex, limit: number): Promise<Map<string, TenantQueue>> {
  const { rows } = await prepared<TenantQueue & { tenantId: string }>(
    db,
    `WITH RECURSIVE tenant (id) AS (
       (SELECT tenant_id FROM jobs WHERE status = 'queued' ORDER BY tenant_id LIMIT 1)
       UNION ALL
       SELECT (SELECT tenant_id FROM jobs WHERE status = 'queued' AND tenant_id > tenant.id
               ORDER BY tenant_id LIMIT 1)
       FROM tenant WHERE tenant.id IS NOT NULL
     )
     SELECT tenant.id AS "tenantId", oldest.created_at AS "oldestAt",
       (SELECT count(*) FROM (
          SELECT FROM jobs WHERE status = 'queued' AND tenant_id = tenant.id LIMIT ?
        ) AS counted)::integer AS queued
     FROM tenant CROSS JOIN LATERAL (
       SELECT created_at FROM jobs WHERE status = 'queued' AND tenant_id = tenant.id
       ORDER BY id LIMIT 1
     ) AS oldest`,
    [limit],
  );
  return new Map(rows.map(({ tenantId, ...queue }) => [tenantId, queue]));
}

/** How many queued jobs of its tenant were created before a job, counted up to a limit, and the oldest. */
export async function readPosition(
  db: Knex,
  { id, tenantId }: { id: string; tenantId: string },
): Promise<{ ahead: number; oldestAt: Date | null }> {
  const { rows } = await prepared<{ ahead: number; oldestAt: Date | null }>(
    db,
    `SELECT (SELECT count(*) FROM (
         SELECT FROM jobs WHERE status = 'queued' AND tenant_id = ? AND id < ? ORDER BY id LIMIT ?
       ) AS before)::integer AS ahead,
       (SELECT created_at FROM jobs WHERE status = 'queued' AND tenant_id = ? ORDER BY id LIMIT 1)
         AS "oldestAt"`,
    [tenantId, id, MAX_POSITION, tenantId],
  );
  return rows[0] ?? { ahead: 0, oldestAt: null };
}
