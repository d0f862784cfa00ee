import type { Knex } from 'knex';

/**
 * Imports that write all rows or none. Rows can be `unchanged`, or `skipped` because another row of
 * such an import is invalid.
 */
export async function up(knex: Knex): Promise<void> {
  await knex.raw(`
    ALTER TABLE imports ADD mode text COLLATE "C" NOT NULL DEFAULT 'each' CHECK (mode IN ('all', 'each'));
    ALTER TABLE import_rows DROP CONSTRAINT import_rows_outcome_check, ADD CONSTRAINT import_rows_outcome_check
      CHECK (outcome IN ('created', 'updated', 'unchanged', 'deleted', 'invalid', 'conflict', 'skipped'));
  `);
}

export async function down(knex: Knex): Promise<void> {
  await knex.raw(`
    UPDATE import_rows SET outcome = 'updated' WHERE outcome = 'unchanged';
    UPDATE import_rows SET outcome = NULL WHERE outcome = 'skipped';
    ALTER TABLE import_rows DROP CONSTRAINT import_rows_outcome_check, ADD CONSTRAINT import_rows_outcome_check
      CHECK (outcome IN ('created', 'updated', 'deleted', 'invalid', 'conflict'));
    ALTER TABLE imports DROP mode;
  `);
}
