import type { Knex } from 'knex';

/** Until when the first attempt of a short job belongs to the process that has committed the job. */
export async function up(knex: Knex): Promise<void> {
  await knex.raw('ALTER TABLE jobs ADD COLUMN leased_until timestamptz');
}

export async function down(knex: Knex): Promise<void> {
  await knex.raw('ALTER TABLE jobs DROP COLUMN leased_until');
}
