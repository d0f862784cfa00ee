import type { Knex } from 'knex';
import { createIndexOnline, dropIndexOnline } from '../core/createIndexOnline.ts';

export const config = { transaction: false };

/** Accounts by their name in any letter case and Unicode form. */
export const up = (knex: Knex): Promise<void> =>
  createIndexOnline(knex, 'users_folded_username', 'users (fold_name(username), id DESC)');

export const down = (knex: Knex): Promise<void> => dropIndexOnline(knex, 'users_folded_username');
