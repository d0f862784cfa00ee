import type { Knex } from 'knex';
import { createIndexOnline, dropIndexOnline } from '../core/createIndexOnline.ts';

export const config = { transaction: false };

/** Requests are listed by the type of their job: of millions, a type may have few. */
export const up = (knex: Knex): Promise<void> =>
  createIndexOnline(
    knex,
    'approvals_job_type',
    'approvals (job_type, id DESC) WHERE job_type IS NOT NULL',
  );

export const down = (knex: Knex): Promise<void> => dropIndexOnline(knex, 'approvals_job_type');
