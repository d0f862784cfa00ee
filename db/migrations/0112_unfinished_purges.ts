import type { Knex } from 'knex';

/**
 * Where the purge of a tenant was when the job ended. Each purge began at the oldest record of the first kind, and never
 * reached the last kinds of a tenant whose history takes longer than one job may.
 */
export const up = async (knex: Knex): Promise<void> =>
  void (await knex.raw('ALTER TABLE purge_progress ADD unfinished jsonb'));

export const down = async (knex: Knex): Promise<void> =>
  void (await knex.raw('ALTER TABLE purge_progress DROP unfinished'));
