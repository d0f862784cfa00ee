import type { Knex } from 'knex';
import { createIndexOnline, dropIndexOnline } from '../core/createIndexOnline.ts';

export const config = { transaction: false };

/** The last jobs of each type, which the purge of a tenant keeps: it read all its jobs where it had only a few of a type. */
export const up = (knex: Knex): Promise<void> =>
  createIndexOnline(knex, 'jobs_tenant_type', 'jobs (tenant_id, type, id DESC)');

export const down = (knex: Knex): Promise<void> => dropIndexOnline(knex, 'jobs_tenant_type');
