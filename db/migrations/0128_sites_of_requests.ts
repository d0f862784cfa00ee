import type { Knex } from 'knex';
import { createIndexOnline, dropIndexOnline } from '../core/createIndexOnline.ts';

export const config = { transaction: false };

/** Requests at devices that moved to a site, for when the site moves to another tenant. */
export const up = (knex: Knex): Promise<void> =>
  createIndexOnline(
    knex,
    'approvals_followed_site',
    'approvals (followed_site_id) WHERE followed_site_id IS NOT NULL',
  );

export const down = (knex: Knex): Promise<void> => dropIndexOnline(knex, 'approvals_followed_site');
