import type { Section } from '../../domain/backups/backups.ts';
import type { InSeries } from '../../domain/backups/retention.ts';
import { assertDefined } from '../../domain/shared/assert.ts';
import type { Knex } from '../core/knex.ts';
import { notifySql } from '../core/unitOfWork.ts';
import { Backup } from '../models/Backup.ts';

/** Changes a backup if it is still in progress. Returns the number of changed rows. */
export const patchInProgress = async (
  db: Knex,
  id: string,
  fields: Partial<Backup>,
): Promise<number> =>
  Backup.query(db).patch(fields).where({ id }).whereIn('status', ['queued', 'running']);

/** Changes a backup if it is still in progress. Returns the changed backup, or undefined. */
export const endInProgress = async (
  trx: Knex,
  id: string,
  fields: Partial<Backup>,
): Promise<Backup | undefined> =>
  Backup.query(trx)
    .patch(fields)
    .where({ id })
    .whereIn('status', ['queued', 'running'])
    .returning('*')
    .first();

/**
 * Records an attempt to write the archive of a backup, unless an attempt has finished it. Later
 * attempts replace earlier ones. Returns false when the archive is finished.
 */
export async function claimAttempt(
  db: Knex,
  { id, attempt, now }: { id: string; attempt: string; now: Date },
): Promise<boolean> {
  const claimed = await Backup.query(db)
    .patch({
      status: 'running',
      pending: { attempt, upload: null },
      updatedAt: now,
      checkAt: now,
    })
    .where({ id, size_bytes: null })
    .whereIn('status', ['queued', 'running']);
  return claimed > 0;
}

/** Records what an attempt wrote. Returns false when a later attempt has replaced it. */
export async function recordWritten(
  db: Knex,
  { id, attempt }: { id: string; attempt: string },
  written: Partial<Backup>,
): Promise<boolean> {
  const changed = await Backup.query(db)
    .patch(written)
    .where({ id })
    .whereRaw(`pending ->> 'attempt' = ?`, [attempt]);
  return changed > 0;
}

/** The creator of the record of an archive that was found in a store; the archive is in no series. */
export const REGISTERED_BY = 'system:register';

/** The sections by which series differ: a full backup has all that its version of Holdfast knows. */
export const SERIES_SECTIONS = `CASE mode WHEN 'full' THEN '[]'::jsonb ELSE sections END`;

/** SQL: an archive that can be restored as far as is known. Every count of backups has this condition. */
export const IS_RESTORABLE = 'archive_error IS NULL';

/** Records that the archive of a backup was loaded (null), or that a load has found an error. */
export async function recordLoad(
  db: Knex,
  id: string,
  archiveError: Backup['archiveError'],
): Promise<void> {
  await Backup.query(db).patch({ archiveError }).where({ id, status: 'completed' });
}

/** The completed backups of a series. */
export async function findSeries(
  db: Knex,
  series: { tenantId: string; label: string; mode: string; sections: readonly Section[] },
): Promise<(Pick<Backup, 'store'> & InSeries)[]> {
  const { tenantId, label, mode, sections } = series;
  const found = await Backup.query(db)
    .where({ tenant_id: tenantId, label, mode, status: 'completed' })
    .whereNot({ created_by: REGISTERED_BY })
    .whereRaw(`${SERIES_SECTIONS} = ?::jsonb`, [mode === 'full' ? '[]' : JSON.stringify(sections)])
    .select('id', 'store', 'snapshot_at', 'archive_error');
  return found.map(({ id, store, snapshotAt, archiveError }) => ({
    id,
    store,
    isRestorable: archiveError === null,
    at: assertDefined(snapshotAt, 'backup.snapshotAt'),
  }));
}

/** Notifies processes that follow a topic when the transaction commits. */
export async function notifyTopic(trx: Knex, topic: string): Promise<void> {
  const notify = notifySql([topic]);
  await trx.raw(`SELECT ${notify.sql}`, notify.bindings);
}
