import type { Knex } from 'knex';

/** Whether the log of a job says already that the runner of its attempt was lost. */
export const up = async (knex: Knex): Promise<void> =>
  void (await knex.raw(
    'ALTER TABLE remote_attempts ADD COLUMN lost_noted boolean NOT NULL DEFAULT false',
  ));

export const down = async (knex: Knex): Promise<void> =>
  void (await knex.raw('ALTER TABLE remote_attempts DROP COLUMN lost_noted'));
