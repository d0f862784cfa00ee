import type { Knex } from './knex.ts';
import { withOwnConnection } from './ownConnection.ts';

/** Longest wait for transactions that are older than a phase of the build. */
const WAIT_MS = 600_000;

/**
 * Creates an index without holding up writers of the table, for a migration without a transaction
 * (`config.transaction` is false). `definition` follows `ON`, such as `jobs (pool, id)`. An index that an
 * interrupted build has left is dropped first; one that is complete stays, so it can be repeated. A restore
 * runs migrations in one transaction, on tables of its own: there it is a plain `CREATE INDEX`.
 */
export async function createIndexOnline(
  knex: Knex,
  name: string,
  definition: string,
): Promise<void> {
  if (knex.isTransaction) return void (await knex.raw(`CREATE INDEX ?? ON ${definition}`, [name]));
  await withOwnConnection(knex, async (run) => {
    await run(`SET lock_timeout = ${WAIT_MS}`);
    try {
      const [found] = await run<{ isValid: boolean }>(
        `SELECT indisvalid AS "isValid" FROM pg_index WHERE indexrelid = to_regclass(?)`,
        [name],
      );
      if (found?.isValid === true) return;
      if (found) await run('DROP INDEX CONCURRENTLY ??', [name]);
      await run(`CREATE INDEX CONCURRENTLY ?? ON ${definition}`, [name]);
    } finally {
      await run('RESET lock_timeout').catch(() => undefined);
    }
  });
}

/** Drops an index that `createIndexOnline` has made, if it exists. */
export const dropIndexOnline = async (knex: Knex, name: string): Promise<void> =>
  void (await knex.raw(`DROP INDEX ${knex.isTransaction ? '' : 'CONCURRENTLY'} IF EXISTS ??`, [
    name,
  ]));
