import type { Knex } from 'knex';

/** A runner that does not reach Temporal takes no jobs, although it reports to the API. */
export const up = async (knex: Knex): Promise<void> =>
  void (await knex.raw(
    'ALTER TABLE runners ADD COLUMN reaches_temporal boolean NOT NULL DEFAULT true',
  ));

export const down = async (knex: Knex): Promise<void> =>
  void (await knex.raw('ALTER TABLE runners DROP COLUMN reaches_temporal'));
