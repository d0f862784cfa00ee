import type { Knex } from '../../db/core/knex.ts';

/**
 * The processes of PostgreSQL that wait for a lock, of any kind or of one, on the database of the test: test files that
 * run beside it use the same server. `key`: of an advisory lock, a small number.
 */
export const waitingForLock = (
  db: Knex,
  locktype?: 'advisory' | 'transactionid',
  key?: number,
): Promise<number[]> =>
  db('pg_locks AS l')
    .join('pg_stat_activity AS a', 'a.pid', 'l.pid')
    .where({
      'l.granted': false,
      ...(locktype && { 'l.locktype': locktype }),
      ...(key !== undefined && { 'l.classid': 0, 'l.objid': key }),
    })
    .whereRaw('a.datname = current_database()')
    .pluck('l.pid');
