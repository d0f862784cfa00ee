import type { Knex } from 'knex';

/** Until when a one-time password is valid. Without it: for 72 hours after the last change of the account. */
export const up = async (knex: Knex): Promise<void> =>
  void (await knex.raw('ALTER TABLE users ADD password_expires_at timestamptz'));

export const down = async (knex: Knex): Promise<void> =>
  void (await knex.raw('ALTER TABLE users DROP password_expires_at'));
