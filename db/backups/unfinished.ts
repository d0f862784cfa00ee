import type { Knex } from '../core/knex.ts';
import { Backup } from '../models/Backup.ts';

/** Backups that are not settled and that nobody has looked at since `before`, oldest look first; marks them as looked at. */
export const takeUnsettledBackups = (
  db: Knex,
  take: { before: Date; now: Date; limit: number },
): Promise<Backup[]> =>
  Backup.query(db)
    .patch({ checkAt: take.now })
    .whereIn('id', (query) =>
      query
        .select('id')
        .from('backups')
        .whereRaw(`(status IN ('queued', 'running', 'deleting') OR pending IS NOT NULL)`)
        .where('check_at', '<', take.before)
        .orderBy('check_at')
        .limit(take.limit)
        .forUpdate()
        .skipLocked(),
    )
    .returning('*') as unknown as Promise<Backup[]>;

/** How the job ended that makes a backup, or the restore before which it is made; null while it goes on. */
export async function endedJob(
  db: Knex,
  backupId: string,
): Promise<{ code: string | null } | null> {
  const { rows } = await db.raw<{ rows: { status: string; code: string | null }[] }>(
    `SELECT status, error ->> 'code' AS code FROM jobs
     WHERE id IN (SELECT job_id FROM backups WHERE id = ? UNION ALL SELECT job_id FROM restore_runs WHERE safety_backup_id = ?)`,
    [backupId, backupId],
  );
  if (rows.some(({ status }) => status === 'queued' || status === 'running')) return null;
  return { code: rows[0]?.code ?? (rows[0]?.status === 'cancelled' ? 'cancelled' : null) };
}

/** Those names of archives whose backups are being made. */
export const goingArchives = async (db: Knex, names: readonly string[]): Promise<string[]> =>
  db('backups')
    .whereIn('archive', [...names])
    .whereIn('status', ['queued', 'running'])
    .pluck('archive');

const AT_ONCE = 200;

export const openRestores = {
  /** Those of `jobIds` that do not run any more. */
  ended: async (db: Knex, jobIds: readonly string[]): Promise<string[]> => {
    const going = new Set<string>(
      await db('jobs')
        .whereIn('id', [...jobIds])
        .whereIn('status', ['queued', 'running'])
        .pluck('id'),
    );
    return jobIds.filter((id) => !going.has(id));
  },

  /** Restores without an outcome whose job has ended. */
  withoutEnd: async (db: Knex): Promise<string[]> => {
    const { rows } = await db.raw<{ rows: { id: string }[] }>(
      `SELECT r.job_id AS id FROM restore_runs AS r JOIN jobs AS j ON j.id = r.job_id AND j.status NOT IN ('queued', 'running')
       WHERE r.purpose = 'restore' AND r.outcome IS NULL LIMIT ?`,
      [AT_ONCE],
    );
    return rows.map(({ id }) => id);
  },
};
