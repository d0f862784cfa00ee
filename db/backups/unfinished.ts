import { claimChosen } from '../core/chosenRows.ts';
import type { Knex } from '../core/knex.ts';
import { Backup } from '../models/Backup.ts';

/**
 * Claims backups that have no final state and were not checked since `before`, those checked
 * longest ago first, and records that they are checked now.
 */
export const claimUnfinishedBackups = (
  db: Knex,
  claim: { before: Date; now: Date; limit: number },
): Promise<Backup[]> =>
  claimChosen(
    Backup.query(db).patch({ checkAt: claim.now }),
    Backup.query(db)
      .whereRaw(`(status IN ('queued', 'running', 'deleting') OR pending IS NOT NULL)`)
      .where('check_at', '<', claim.before)
      .orderBy('check_at')
      .limit(claim.limit),
    ['*'],
  );

/**
 * How the job ended that makes a backup, or that makes it before a restore; null while the job
 * runs. `code` is the code of its error, or null.
 */
export async function findJobEnd(
  db: Knex,
  backupId: string,
): Promise<{ code: string | null } | null> {
  const { rows } = await db.raw<{ rows: { status: string; code: string | null }[] }>(
    `SELECT status, error ->> 'code' AS code FROM jobs
     WHERE id IN (
       SELECT job_id FROM backups WHERE id = ?
       UNION ALL SELECT job_id FROM restore_runs WHERE pre_restore_backup_id = ?)`,
    [backupId, backupId],
  );
  if (rows.some(({ status }) => status === 'queued' || status === 'running')) return null;
  return { code: rows[0] ? endCode(rows[0]) : null };
}

/** Why a job has ended: the code of its error, or `cancelled`; null if it has succeeded. */
const endCode = ({ status, code }: { status: string; code: string | null }): string | null =>
  code ?? (status === 'cancelled' ? 'cancelled' : null);

/**
 * Those of the archive names that this database knows and nothing writes any more: of backups that have
 * ended, and of earlier or proven attempts of audit archives. Others may be of another installation
 * that uses the same store.
 */
export async function findEndedArchives(db: Knex, names: readonly string[]): Promise<string[]> {
  const { rows } = await db.raw<{ rows: { name: string }[] }>(
    `WITH listed AS (
       SELECT name, regexp_match(name, '^(.+)-([0-9]{1,9})[.]hfb$') AS parts
       FROM unnest(?::text[]) AS name)
     SELECT l.name FROM listed AS l
       JOIN backups AS b ON b.id = regexp_replace(l.name, '[.]hfb$', '') AND b.archive = l.name
     WHERE b.status NOT IN ('queued', 'running')
     UNION ALL
     SELECT l.name FROM listed AS l JOIN audit_archives AS a ON a.id = l.parts[1]
     WHERE l.parts[2]::integer < a.attempts OR l.name = a.archive AND a.status <> 'writing'`,
    [[...names]],
  );
  return rows.map(({ name }) => name);
}

const BATCH_SIZE = 200;

export const unfinishedRestores = {
  /** Those of the job ids whose jobs have ended or do not exist. */
  findEnded: async (db: Knex, jobIds: readonly string[]): Promise<string[]> => {
    const running = new Set<string>(
      await db('jobs')
        .whereIn('id', [...jobIds])
        .whereIn('status', ['queued', 'running'])
        .pluck('id'),
    );
    return jobIds.filter((id) => !running.has(id));
  },

  /** The jobs of restores that have ended without recording an outcome, at most 200, and why. */
  findWithoutOutcome: async (db: Knex): Promise<{ jobId: string; code: string | null }[]> => {
    const { rows } = await db.raw<{ rows: { id: string; status: string; code: string | null }[] }>(
      `SELECT r.job_id AS id, j.status, j.error ->> 'code' AS code
       FROM restore_runs AS r
         JOIN jobs AS j ON j.id = r.job_id AND j.status NOT IN ('queued', 'running')
       WHERE r.purpose = 'restore' AND r.outcome IS NULL LIMIT ?`,
      [BATCH_SIZE],
    );
    return rows.map((row) => ({ jobId: row.id, code: endCode(row) }));
  },
};
