import type { Knex } from 'knex';

/** Indexes for the orders of the list of users, and for its filter by group. */
const INDEXES: Readonly<Record<string, string>> = {
  users_name_order: 'users (username, id)',
  users_last_login: 'users (last_login_at, id)',
  users_groups: 'users USING gin (external_groups)',
};

export async function up(knex: Knex): Promise<void> {
  for (const [name, definition] of Object.entries(INDEXES))
    await knex.raw(`CREATE INDEX ${name} ON ${definition}`);
}

export const down = async (knex: Knex): Promise<void> =>
  void (await knex.raw(`DROP INDEX ${Object.keys(INDEXES).join(', ')}`));
