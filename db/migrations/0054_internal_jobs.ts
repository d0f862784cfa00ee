import type { Knex } from 'knex';

/** Jobs of the system, in the order of lists: few, where no webhooks are. */
export const up = async (knex: Knex): Promise<void> =>
  void (await knex.raw(
    `CREATE INDEX jobs_internal ON jobs (id DESC) WHERE source_kind IN ('webhook', 'system')`,
  ));

export const down = async (knex: Knex): Promise<void> =>
  void (await knex.raw('DROP INDEX jobs_internal'));
