import type { Knex } from 'knex';

/**
 * The name `modules` means the workers themselves: secrets that name it are released to modules. A pool
 * of runners that was given this name before would share its secrets with them. Renaming it here would
 * leave its runners and declarations behind, so the administrator does that with the former version.
 */
export async function up(knex: Knex): Promise<void> {
  const { rows } = await knex.raw<{ rows: unknown[] }>(
    `SELECT 1 FROM pools WHERE name = 'modules'`,
  );
  if (rows.length > 0) throw new Error(IN_USE);
  await knex.raw(`
    ALTER TABLE pools ADD CONSTRAINT pools_reserved_name CHECK (name <> 'modules');
    CREATE INDEX jobs_pool ON jobs (pool, id DESC) WHERE pool <> '';
  `);
}

const IN_USE =
  'There is a pool called modules, a name that now means the workers themselves. With the former version: ' +
  'make a pool with another name and a runner token for it, change the pool in the declarations of its ' +
  'runners and in the secrets that name it, stop the runners of the pool modules, delete its job types ' +
  'and then the pool (DELETE /api/pools/modules). Then migrate again. Nothing was changed.';

export async function down(knex: Knex): Promise<void> {
  await knex.raw(`
    DROP INDEX jobs_pool;
    ALTER TABLE pools DROP CONSTRAINT pools_reserved_name;
  `);
}
