import type { Knex } from 'knex';

/** The dry run whose rows an import has written. */
export async function up(knex: Knex): Promise<void> {
  await knex.raw(`
    ALTER TABLE imports ADD dry_run_id text COLLATE "C";
    CREATE INDEX imports_dry_run ON imports (dry_run_id) WHERE dry_run_id IS NOT NULL;
  `);
}

export async function down(knex: Knex): Promise<void> {
  await knex.raw('ALTER TABLE imports DROP dry_run_id');
}
