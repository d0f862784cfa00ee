import type { Knex } from 'knex';
import { createIndexOnline, dropIndexOnline } from '../core/createIndexOnline.ts';

export const config = { transaction: false };

/** Accounts by the names that a gateway may send as the actor. The last release uses the older indexes. */
export async function up(knex: Knex): Promise<void> {
  for (const column of ['username', 'email', 'external_id'])
    await createIndexOnline(knex, `users_known_${column}`, `users (known_name(${column}))`);
}

export async function down(knex: Knex): Promise<void> {
  for (const column of ['username', 'email', 'external_id'])
    await dropIndexOnline(knex, `users_known_${column}`);
}
