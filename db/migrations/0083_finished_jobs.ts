import type { Knex } from 'knex';
import { createIndexOnline, dropIndexOnline } from '../core/createIndexOnline.ts';

export const config = { transaction: false };

/** Jobs that failed within a day: of all failed jobs these are few, and they may have been created long before. */
export const up = (knex: Knex): Promise<void> =>
  createIndexOnline(
    knex,
    'jobs_finished',
    'jobs (status, finished_at) WHERE finished_at IS NOT NULL',
  );

export const down = (knex: Knex): Promise<void> => dropIndexOnline(knex, 'jobs_finished');
