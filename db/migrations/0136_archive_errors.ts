import type { Knex } from 'knex';

/** Why an archive cannot be restored, when this version of the product records it for the first time. */
const LAST_RESULTS = `
  SELECT DISTINCT ON (r.backup_id) r.backup_id,
    CASE WHEN r.report IS NULL AND j.status = 'failed' THEN j.error END AS error
  FROM restore_runs AS r JOIN jobs AS j ON j.id = r.job_id
  WHERE r.report IS NOT NULL OR j.status = 'succeeded'
    OR j.status = 'failed' AND j.error ->> 'code' IN ('archive_damaged', 'archive_truncated',
      'archive_missing', 'not_an_archive', 'test_restore_failed', 'format_too_new', 'schema_too_new',
      'master_key_missing')
  ORDER BY r.backup_id, r.job_id DESC`;

/**
 * The error of the last load that found out whether an archive can be restored; null if it can. The runs that say
 * so are purged with their jobs, but the archive remains damaged.
 */
export const up = async (knex: Knex): Promise<void> =>
  void (await knex.raw(`
    ALTER TABLE backups ADD COLUMN archive_error json;
    UPDATE backups SET archive_error = l.error FROM (${LAST_RESULTS}) AS l
      WHERE l.backup_id = id AND l.error IS NOT NULL AND status = 'completed'`));

export const down = async (knex: Knex): Promise<void> =>
  void (await knex.raw('ALTER TABLE backups DROP COLUMN archive_error'));
