import type { RetentionPolicy } from '../../domain/backups/retention.ts';
import type { Knex } from '../core/knex.ts';

/** A completed backup of a series whose newest backup has a retention policy. */
type RetainedBackup = { id: string; at: Date; series: number; policy: RetentionPolicy };

/** The series of a backup has these in common, and the mode and sections. */
type InSeries = { tenantId: string; label: string };

/**
 * The completed backups of those series of these labels whose newest backup has a retention policy: it
 * is the one that the series follows.
 */
export async function findRetainedSeries(
  db: Knex,
  backups: readonly InSeries[],
): Promise<RetainedBackup[]> {
  const { rows } = await db.raw<{ rows: RetainedBackup[] }>(
    `WITH newest AS (
       SELECT DISTINCT ON (tenant_id, label, mode, sections)
         tenant_id, label, mode, sections, retention
       FROM backups
       WHERE status = 'completed' AND snapshot_at IS NOT NULL
         AND (tenant_id, label) IN (SELECT * FROM unnest(?::text[], ?::text[]))
       ORDER BY tenant_id, label, mode, sections, snapshot_at DESC, id DESC),
     series AS (SELECT *, row_number() OVER () AS number FROM newest WHERE retention <> '{}')
     SELECT b.id, b.snapshot_at AS at, s.number::int AS series, s.retention AS policy
     FROM series AS s
       JOIN backups AS b ON b.tenant_id = s.tenant_id AND b.label = s.label AND b.mode = s.mode
         AND b.sections = s.sections AND b.status = 'completed' AND b.snapshot_at IS NOT NULL`,
    [backups.map(({ tenantId }) => tenantId), backups.map(({ label }) => label)],
  );
  return rows;
}
