import { ARCHIVE_JOB } from '../../domain/audit/archives.ts';
import { DAY_MS } from '../../domain/shared/durations.ts';
import { minIdAt } from '../../platform/ids.ts';
import type { Knex } from '../core/knex.ts';

/** A tenant whose audit log is due to be archived, and after how many days. */
export type DueArchive = { tenantId: string; days: number };

/**
 * Some tenants, chosen at random, with entries in whole months (UTC) that are older than their period, or with an archive
 * that is not finished, unless a job for them was created during the last day. `fallback` is the
 * period of tenants that have not set theirs.
 */
export async function findDueArchives(
  db: Knex,
  { now, fallback, limit }: { now: Date; fallback: number | null; limit: number },
): Promise<DueArchive[]> {
  const { rows } = await db.raw<{ rows: DueArchive[] }>(
    `SELECT h.tenant_id AS "tenantId", p.days
     FROM audit_heads AS h LEFT JOIN retention_settings AS r ON r.tenant_id = h.tenant_id
       CROSS JOIN LATERAL (SELECT CASE WHEN jsonb_exists(r.days, 'auditArchive')
         THEN (r.days ->> 'auditArchive')::integer ELSE :fallback::integer END AS days) AS p
     WHERE p.days IS NOT NULL
       AND NOT EXISTS (SELECT FROM jobs AS j WHERE j.type = '${ARCHIVE_JOB}' AND j.id >= :since
         AND j.tenant_id = h.tenant_id)
       AND (EXISTS (SELECT FROM audit_archives AS a
           WHERE a.tenant_id = h.tenant_id AND a.status <> 'completed')
         OR (SELECT e.at FROM audit_entries AS e
             WHERE e.tenant_id = h.tenant_id AND e.position > 0 ORDER BY e.position LIMIT 1)
           < date_trunc('month', (:now::timestamptz - p.days * interval '1 day') AT TIME ZONE 'UTC')
             AT TIME ZONE 'UTC')
     ORDER BY random() LIMIT :limit`,
    { now, fallback, limit, since: minIdAt('job', new Date(now.getTime() - DAY_MS)) },
  );
  return rows;
}
