import type { Knex } from 'knex';
import { createIndexOnline, dropIndexOnline } from '../core/createIndexOnline.ts';

export const config = { transaction: false };

/** Jobs that wait, by tenant and in their order: how many there are, and the oldest one. */
export const up = (knex: Knex): Promise<void> =>
  createIndexOnline(knex, 'jobs_queued', `jobs (tenant_id, id) WHERE status = 'queued'`);

export const down = (knex: Knex): Promise<void> => dropIndexOnline(knex, 'jobs_queued');
