import type { Knex } from 'knex';

/** Where the browser of a login continues if the login fails. Older processes do not set it. */
export async function up(knex: Knex): Promise<void> {
  await knex.raw('ALTER TABLE logins ADD COLUMN failure_to text');
}

export async function down(knex: Knex): Promise<void> {
  await knex.raw('ALTER TABLE logins DROP COLUMN failure_to');
}
