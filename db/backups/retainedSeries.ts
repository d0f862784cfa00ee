import type { InSeries, RetentionPolicy } from '../../domain/backups/retention.ts';
import type { Knex } from '../core/knex.ts';
import { IS_RESTORABLE, REGISTERED_BY, SERIES_SECTIONS } from './backups.ts';

/** A completed backup of a series whose newest backup has a retention policy. */
type RetainedBackup = InSeries & { series: number; policy: RetentionPolicy };

/** The series of a backup has these in common, and the mode; if it is partial, also the sections. */
type Labelled = { tenantId: string; label: string };

/**
 * The completed backups of those series of these labels whose newest backup has a retention policy: it
 * is the one that the series follows.
 */
export async function findRetainedSeries(
  db: Knex,
  backups: readonly Labelled[],
): Promise<RetainedBackup[]> {
  const { rows } = await db.raw<{ rows: RetainedBackup[] }>(
    `WITH completed AS (
       SELECT id, tenant_id, label, mode, ${SERIES_SECTIONS} AS sections, snapshot_at, retention,
         ${IS_RESTORABLE} AS is_restorable
       FROM backups
       WHERE status = 'completed' AND snapshot_at IS NOT NULL AND created_by <> '${REGISTERED_BY}'
         AND (tenant_id, label) IN (SELECT * FROM unnest(?::text[], ?::text[]))),
     newest AS (
       SELECT DISTINCT ON (tenant_id, label, mode, sections)
         tenant_id, label, mode, sections, retention
       FROM completed
       ORDER BY tenant_id, label, mode, sections, snapshot_at DESC, id DESC),
     series AS (SELECT *, row_number() OVER () AS number FROM newest WHERE retention <> '{}')
     SELECT b.id, b.snapshot_at AS at, b.is_restorable AS "isRestorable", s.number::int AS series, s.retention AS policy
     FROM series AS s JOIN completed AS b USING (tenant_id, label, mode, sections)`,
    [backups.map(({ tenantId }) => tenantId), backups.map(({ label }) => label)],
  );
  return rows;
}
