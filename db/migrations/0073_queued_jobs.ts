import type { Knex } from 'knex';

/** Jobs that wait, by tenant and in their order: how many there are, and the oldest one. */
export const up = async (knex: Knex): Promise<void> =>
  void (await knex.raw(`CREATE INDEX jobs_queued ON jobs (tenant_id, id) WHERE status = 'queued'`));

export const down = async (knex: Knex): Promise<void> =>
  void (await knex.raw('DROP INDEX jobs_queued'));
