import type { Knex } from 'knex';

/** A job of a module may apply changes several times. `changes_key` says which; '' for `inventory.apply`. */
export const up = async (knex: Knex): Promise<void> =>
  void (await knex.raw(`
    ALTER TABLE inventory_apply_results ADD COLUMN changes_key text COLLATE "C" NOT NULL DEFAULT '';
    ALTER TABLE inventory_apply_results DROP CONSTRAINT inventory_apply_results_pkey,
      ADD PRIMARY KEY (job_id, changes_key);
  `));

export const down = async (knex: Knex): Promise<void> =>
  void (await knex.raw(`
    DELETE FROM inventory_apply_results WHERE changes_key <> '';
    ALTER TABLE inventory_apply_results DROP CONSTRAINT inventory_apply_results_pkey,
      ADD PRIMARY KEY (job_id);
    ALTER TABLE inventory_apply_results DROP COLUMN changes_key;
  `));
