import type { Knex } from 'knex';
import { createIndexOnline, dropIndexOnline } from '../core/createIndexOnline.ts';

export const config = { transaction: false };

/**
 * The jobs of a tenant without those that Holdfast made for itself: its list read all its delivery jobs, which may be
 * millions, where it had few others.
 */
export const up = (knex: Knex): Promise<void> =>
  createIndexOnline(
    knex,
    'jobs_tenant_asked_for',
    `jobs (tenant_id, id DESC) WHERE source_kind <> 'webhook' AND source_kind <> 'system'`,
  );

export const down = (knex: Knex): Promise<void> => dropIndexOnline(knex, 'jobs_tenant_asked_for');
