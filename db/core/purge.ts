import { runEach } from '../../domain/shared/runEach.ts';
import type { Knex } from './knex.ts';

/**
 * Deletes expired rows, at most `limit` of each kind: sessions that ended or expired before
 * `before`, unfinished sign-ins, and rate limit counters. Returns the largest number of rows of one
 * kind.
 */
export async function purgeExpired(db: Knex, before: Date, limit: number): Promise<number> {
  const purge = async (table: string, key: string, column: string, bound: Date | number) => {
    const { rowCount } = await db.raw<{ rowCount: number }>(
      'DELETE FROM ?? WHERE ?? IN (SELECT ?? FROM ?? WHERE ?? < ? ORDER BY ?? LIMIT ?)',
      [table, key, key, table, column, bound, column, limit],
    );
    return rowCount;
  };
  const purged = await runEach([
    () => purge('sessions', 'id', 'absolute_expires_at', before),
    () => purge('sessions', 'id', 'ended_at', before),
    () => purge('logins', 'id', 'expires_at', before),
    () => purge('rate_limits', 'key', 'expire', before.getTime()),
  ]);
  return Math.max(...purged);
}
