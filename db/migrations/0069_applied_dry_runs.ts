import type { Knex } from 'knex';

/** The dry run whose rows an import has written. */
export const up = async (knex: Knex): Promise<void> =>
  void (await knex.raw('ALTER TABLE imports ADD dry_run_id text COLLATE "C"'));

export const down = async (knex: Knex): Promise<void> =>
  void (await knex.raw('ALTER TABLE imports DROP dry_run_id'));
