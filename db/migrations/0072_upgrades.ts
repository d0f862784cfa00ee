import type { Knex } from 'knex';

/**
 * `schema_contracts` has the contract steps that the schema has taken: a process that does not know the
 * migration `needs` is too old for it. `interruptions` counts the attempts of a job that an orderly stop of
 * its worker has interrupted.
 */
export async function up(knex: Knex): Promise<void> {
  await knex.raw(`
    CREATE TABLE schema_contracts (
      name text COLLATE "C" PRIMARY KEY,
      needs text COLLATE "C" NOT NULL,
      reason text NOT NULL
    );
    ALTER TABLE jobs ADD COLUMN interruptions integer NOT NULL DEFAULT 0;
  `);
}

export async function down(knex: Knex): Promise<void> {
  await knex.raw(`
    ALTER TABLE jobs DROP COLUMN interruptions;
    DROP TABLE schema_contracts;
  `);
}
