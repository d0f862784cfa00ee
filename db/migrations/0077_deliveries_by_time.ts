import type { Knex } from 'knex';
import { createIndexOnline, dropIndexOnline } from '../core/createIndexOnline.ts';

export const config = { transaction: false };

/**
 * Deliveries of the last hour: their ids have the time of the event, which a replay may repeat months later. Rows are
 * written in the order of their times, so an entry for a range of pages is enough, and a new row hardly costs anything.
 */
export const up = (knex: Knex): Promise<void> =>
  createIndexOnline(
    knex,
    'deliveries_created',
    'deliveries USING brin (created_at) WITH (autosummarize = on)',
  );

export const down = (knex: Knex): Promise<void> => dropIndexOnline(knex, 'deliveries_created');
