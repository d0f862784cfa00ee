import { readDatabaseTime } from '../../db/core/databaseTime.ts';
import type { Knex } from '../../db/core/knex.ts';
import { useConnectionsForProcess } from '../../platform/connectionUser.ts';
import type { Log } from '../../platform/log.ts';

/** A clock that differs by less is right. */
const MAX_DIFFERENCE_MS = 2_000;

/** By how much the clock of this process is ahead of that of PostgreSQL, in milliseconds; what the way takes is left out. */
async function readLead(db: Knex): Promise<number> {
  const [startedAt, startedMs] = [performance.now(), Date.now()];
  const databaseMs = (await readDatabaseTime(db)).getTime();
  const takenMs = performance.now() - startedAt;
  if (startedMs > databaseMs) return startedMs - databaseMs;
  return Math.min(startedMs + takenMs - databaseMs, 0);
}

/**
 * Compares the clock of this process with that of PostgreSQL, which all processes share: the times of events, audit
 * entries and sessions are those of processes.
 */
export function createClockCheck({ db, log }: { db: Knex; log: Log }) {
  let isWrong = false;
  return async (): Promise<void> => {
    const leadMs = await useConnectionsForProcess(() => readLead(db));
    const wasWrong = isWrong;
    isWrong = Math.abs(leadMs) > MAX_DIFFERENCE_MS;
    const seconds = Math.round(Math.abs(leadMs) / 1_000);
    const difference = `${seconds} s ${leadMs > 0 ? 'ahead of' : 'behind'} that of PostgreSQL`;
    if (isWrong && !wasWrong)
      log.warn(
        { code: 'clock_differs', leadMs },
        `the clock of this machine is ${difference}; synchronise both, for example with NTP`,
      );
    if (wasWrong && !isWrong) log.info('the clock of this machine is that of PostgreSQL again');
  };
}
