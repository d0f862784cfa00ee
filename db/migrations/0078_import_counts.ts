import type { Knex } from 'knex';

/**
 * The number of rows of an import for each outcome, as `done` is their number: lists of imports have
 * them, and an import has up to 200,000 rows. Of older imports they are counted.
 */
export const up = async (knex: Knex): Promise<void> =>
  void (await knex.raw("ALTER TABLE imports ADD counts jsonb NOT NULL DEFAULT '{}'"));

export const down = async (knex: Knex): Promise<void> =>
  void (await knex.raw('ALTER TABLE imports DROP counts'));
