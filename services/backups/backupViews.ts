import { findRetainedSeries } from '../../db/backups/retainedSeries.ts';
import type { Knex } from '../../db/core/knex.ts';
import { withJobMarks } from '../../db/jobs/purgedJobs.ts';
import { findSchedulesOfJobs } from '../../db/jobs/schedulesOfJobs.ts';
import { findHeldTenants } from '../../db/retention/holds.ts';
import type { BackupData, BackupView } from '../../domain/backups/records.ts';
import { retentionReasons, type KeptAs, type RetainedAs } from '../../domain/backups/retention.ts';

/** Why retention keeps completed backups, by their id; without those whose series keeps all. */
async function findReasons(
  db: Knex,
  completed: readonly BackupData[],
): Promise<ReadonlyMap<string, RetainedAs[]>> {
  const rows = await findRetainedSeries(db, completed);
  const reasons = new Map<string, RetainedAs[]>(rows.map(({ id }) => [id, []]));
  for (const series of Map.groupBy(rows, (row) => row.series).values())
    for (const [id, own] of retentionReasons(series[0]?.policy ?? {}, series)) reasons.set(id, own);
  return reasons;
}

/** What keeps each of these backups. */
async function findKeptAs(
  db: Knex,
  completed: readonly BackupData[],
): Promise<(backup: BackupData) => KeptAs[]> {
  if (completed.length === 0) return () => [];
  const reasons = await findReasons(db, completed);
  const held = await findHeldTenants(db, [...new Set(completed.map(({ tenantId }) => tenantId))]);
  return ({ id, tenantId }) => [
    ...(reasons.get(id) ?? (['all'] as const)),
    ...(held.has(tenantId) ? (['legal_hold'] as const) : []),
  ];
}

/** Adds to backups what other records say: whether their job is purged, its schedule, what keeps them. */
export async function toBackupViews(
  db: Knex,
  backups: readonly BackupData[],
): Promise<BackupView[]> {
  const completed = backups.filter(({ status }) => status === 'completed');
  const keptAs = await findKeptAs(db, completed);
  const scheduleOf = await findSchedulesOfJobs(
    db,
    backups.flatMap(({ jobId }) => jobId ?? []),
  );
  return (await withJobMarks(db, backups)).map((backup) => ({
    ...backup,
    scheduleId: scheduleOf.get(backup.jobId ?? '') ?? null,
    keptAs: backup.status === 'completed' ? keptAs(backup) : null,
  }));
}
