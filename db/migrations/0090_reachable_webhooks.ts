import type { Knex } from 'knex';

/**
 * The queue of deliveries spares endpoints that cannot be reached, and not those that reject some events.
 * `unreachable_since`: since when no attempt had a usable answer. `probed_at`: when the queue has last started a
 * delivery beyond the number that may be open.
 */
export const up = async (knex: Knex): Promise<void> =>
  void (await knex.raw(
    'ALTER TABLE webhooks ADD COLUMN unreachable_since timestamptz, ADD COLUMN probed_at timestamptz',
  ));

export const down = async (knex: Knex): Promise<void> =>
  void (await knex.raw(
    'ALTER TABLE webhooks DROP COLUMN unreachable_since, DROP COLUMN probed_at',
  ));
