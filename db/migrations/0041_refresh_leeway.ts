import type { Knex } from 'knex';

/** How often the tokens of a session had been replaced when a token was issued. */
export async function up(knex: Knex): Promise<void> {
  await knex.raw('ALTER TABLE session_tokens ADD COLUMN generation integer NOT NULL DEFAULT 0');
}

export async function down(knex: Knex): Promise<void> {
  await knex.raw('ALTER TABLE session_tokens DROP COLUMN generation');
}
