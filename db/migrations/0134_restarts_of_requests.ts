import type { Knex } from 'knex';

/** How often the workflow of a request was started again because it had failed: that has a limit. */
export const up = async (knex: Knex): Promise<void> =>
  void (await knex.raw('ALTER TABLE approvals ADD COLUMN restarts smallint NOT NULL DEFAULT 0'));

export const down = async (knex: Knex): Promise<void> =>
  void (await knex.raw('ALTER TABLE approvals DROP COLUMN restarts'));
