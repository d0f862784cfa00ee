import type { Knex } from 'knex';

/** Short jobs that start together share a run: `workflow_id` is its workflow, null for the job's own. */
export const up = async (knex: Knex): Promise<void> =>
  void (await knex.raw('ALTER TABLE jobs ADD workflow_id text COLLATE "C"'));

export const down = async (knex: Knex): Promise<void> =>
  void (await knex.raw('ALTER TABLE jobs DROP workflow_id'));
