import { assertDefined } from '../../domain/shared/assert.ts';
import type { Knex } from './knex.ts';

/**
 * SQL: the times of the database for columns that are shown. Times are shown with milliseconds, and filters
 * compare with what is shown.
 */
export const SHOWN_CLOCK = `date_trunc('milliseconds', clock_timestamp())`;
/** SQL: the beginning of the transaction, likewise. */
export const SHOWN_NOW = `date_trunc('milliseconds', now())`;

/**
 * The time of the database, which is the same for all processes. What deletes, disables or skips by age asks
 * it, so that no machine whose clock is wrong does so too early.
 */
export async function readDatabaseTime(db: Knex): Promise<Date> {
  const { rows } = await db.raw<{ rows: { now: Date }[] }>('SELECT clock_timestamp() AS now');
  return assertDefined(rows[0], 'clock_timestamp()').now;
}
