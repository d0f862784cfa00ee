import type { Knex } from 'knex';

/** The version of a job type of runners that a request is about; its job runs with no other one. */
export async function up(knex: Knex): Promise<void> {
  await knex.raw('ALTER TABLE approvals ADD type_digest text COLLATE "C"');
}

export async function down(knex: Knex): Promise<void> {
  await knex.raw('ALTER TABLE approvals DROP type_digest');
}
