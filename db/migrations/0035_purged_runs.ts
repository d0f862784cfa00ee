import type { Knex } from 'knex';

/**
 * `purged_runs` has up to which scheduled time runs of a schedule were purged: a backfill does not
 * run those occurrences again. Of earlier purges only the tenant is known.
 */
export const up = async (knex: Knex): Promise<void> =>
  void (await knex.raw(`
    CREATE TABLE purged_runs (
      schedule_id text COLLATE "C" PRIMARY KEY,
      until_due   timestamptz NOT NULL
    );
    INSERT INTO purged_runs (schedule_id, until_due)
      SELECT s.id, time_of_job_id(m.until_id) FROM schedules AS s
      JOIN purge_marks AS m ON m.kind = 'scheduleRuns' AND m.tenant_id = s.tenant_id
      WHERE s.created_at <= m.purged_at;
  `));

export const down = async (knex: Knex): Promise<void> =>
  void (await knex.raw('DROP TABLE purged_runs'));
