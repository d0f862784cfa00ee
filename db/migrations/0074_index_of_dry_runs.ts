import type { Knex } from 'knex';
import { createIndexOnline, dropIndexOnline } from '../core/createIndexOnline.ts';

export const config = { transaction: false };

/** The import that has written the rows of a dry run. */
export const up = (knex: Knex): Promise<void> =>
  createIndexOnline(knex, 'imports_dry_run', 'imports (dry_run_id) WHERE dry_run_id IS NOT NULL');

export const down = (knex: Knex): Promise<void> => dropIndexOnline(knex, 'imports_dry_run');
