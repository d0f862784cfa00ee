import type { Knex } from 'knex';
import { createIndexOnline, dropIndexOnline } from '../core/createIndexOnline.ts';

export const config = { transaction: false };

/**
 * The deliveries of a webhook that wait for a slot. Of a webhook with many pending deliveries, nearly all have no job:
 * counting the others read them all.
 */
export const up = (knex: Knex): Promise<void> =>
  createIndexOnline(
    knex,
    'deliveries_with_job',
    `deliveries (webhook_id) WHERE status = 'pending' AND job_id IS NOT NULL`,
  );

export const down = (knex: Knex): Promise<void> => dropIndexOnline(knex, 'deliveries_with_job');
