import type { Knex } from 'knex';
import { createIndexOnline, dropIndexOnline } from '../core/createIndexOnline.ts';

/** Indexes for the orders of the list of users, and for its filter by group. */
const INDEXES: Readonly<Record<string, string>> = {
  users_name_order: 'users (username, id)',
  users_last_login: 'users (last_login_at, id)',
  users_groups: 'users USING gin (external_groups)',
};

export const config = { transaction: false };

export async function up(knex: Knex): Promise<void> {
  for (const [name, definition] of Object.entries(INDEXES))
    await createIndexOnline(knex, name, definition);
}

export async function down(knex: Knex): Promise<void> {
  for (const name of Object.keys(INDEXES)) await dropIndexOnline(knex, name);
}
