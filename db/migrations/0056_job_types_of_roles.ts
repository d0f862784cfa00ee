import type { Knex } from 'knex';

/** Patterns of the job types that a custom role names. */
export const up = async (knex: Knex): Promise<void> =>
  void (await knex.raw(`ALTER TABLE roles ADD COLUMN job_types text[] NOT NULL DEFAULT '{}'`));

export const down = async (knex: Knex): Promise<void> =>
  void (await knex.raw('ALTER TABLE roles DROP COLUMN job_types'));
