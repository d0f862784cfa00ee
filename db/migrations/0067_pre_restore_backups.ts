import type { Knex } from 'knex';

/** A pre-restore backup shows the restore before which it was made. */
export const up = async (knex: Knex): Promise<void> =>
  void (await knex.raw(`
    CREATE INDEX restore_runs_pre_restore ON restore_runs (pre_restore_backup_id)
      WHERE pre_restore_backup_id IS NOT NULL
  `));

export const down = async (knex: Knex): Promise<void> =>
  void (await knex.raw('DROP INDEX restore_runs_pre_restore'));
