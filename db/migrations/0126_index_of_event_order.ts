import type { Knex } from 'knex';
import { createIndexOnline, dropIndexOnline } from '../core/createIndexOnline.ts';

export const config = { transaction: false };

/** Events that are not published yet, in the order in which they are. The index by id has no use any more. */
export async function up(knex: Knex): Promise<void> {
  await createIndexOnline(
    knex,
    'events_unpublished_position',
    'events (position) WHERE sequence IS NULL',
  );
  await dropIndexOnline(knex, 'events_unpublished');
}

export async function down(knex: Knex): Promise<void> {
  await createIndexOnline(knex, 'events_unpublished', 'events (id) WHERE sequence IS NULL');
  await dropIndexOnline(knex, 'events_unpublished_position');
}
