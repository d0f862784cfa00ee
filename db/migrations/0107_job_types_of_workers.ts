import type { Knex } from 'knex';

/**
 * The job types that a worker knows: a waiting job whose type no worker knows ends after a day. Null for a worker
 * of an earlier version, which may know any type.
 */
export const up = async (knex: Knex): Promise<void> =>
  void (await knex.raw('ALTER TABLE workers ADD COLUMN job_types text[] COLLATE "C"'));

export const down = async (knex: Knex): Promise<void> =>
  void (await knex.raw('ALTER TABLE workers DROP COLUMN job_types'));
