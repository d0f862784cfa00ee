import type { Work } from '../db/commit.ts';
import type { Knex } from '../db/core/knex.ts';
import type { Schedule } from '../db/models/Schedule.ts';
import { skipTimes, timesWithRun, type SkippedTime } from '../db/schedules/schedules.ts';
import { listDue } from '../domain/schedules/occurrences.ts';
import { AppError } from '../domain/shared/errors.ts';
import { isMissed, timingOf, type RunReason } from '../domain/schedules/schedules.ts';
import type { Ids } from '../platform/ids.ts';
import type { DispatchTask } from '../temporal/contracts.ts';
import { tellSkipped } from './scheduleTrail.ts';

/** Times due that one change of a schedule accounts for: five weeks of every minute. */
export const MAX_CLOSED = 50_000;

/** The times due from the first that is not accounted for up to and including `until`, at most `limit`. */
export function openTimes(schedule: Schedule, until: Date, limit: number): Date[] {
  if (schedule.nextDueAt === null || schedule.nextDueAt > until) return [];
  return listDue(timingOf(schedule), new Date(schedule.nextDueAt.getTime() - 1), until, limit);
}

/** Runs of kind `due` for times that nothing was done for; those with a run already are left out. */
export const skippedTimes = (
  ids: Ids,
  times: readonly Date[],
  withRun: ReadonlySet<number>,
  reasonOf: (dueAt: Date) => RunReason,
): SkippedTime[] =>
  times
    .filter((dueAt) => !withRun.has(dueAt.getTime()))
    .map((dueAt) => ({ id: ids.at('run', dueAt), dueAt, reason: reasonOf(dueAt) }));

type Closing = {
  reason: RunReason;
  /** What is due next, once these are accounted for. */
  next: Date | null;
  /** Times that are left open. */
  except?: (dueAt: Date) => boolean;
};

/**
 * Accounts for the times due up to now before a schedule changes its times, in the transaction that has locked it: what
 * has no run gets one that says why. Error: `unavailable` after a down-time of the workers so long that they must
 * account for it first.
 */
export async function closeTimes(
  work: Work<DispatchTask>,
  trx: Knex,
  ids: Ids,
  schedule: Schedule,
  { reason, next, except = () => false }: Closing,
): Promise<void> {
  const { now } = work;
  if (schedule.nextDueAt === null) return;
  const times = openTimes(schedule, now, MAX_CLOSED + 1);
  if (times.length > MAX_CLOSED) {
    throw new AppError(
      'unavailable',
      'More times were due while no worker ran than one request can account for. Start a worker, and try again.',
      { retryAfterSeconds: 60 },
    );
  }
  const withRun = await timesWithRun(trx, schedule.id, schedule.nextDueAt, now);
  const over = times.filter((dueAt) => !except(dueAt));
  const skipped = skippedTimes(ids, over, withRun, (dueAt) =>
    !schedule.enabled ? 'disabled' : isMissed(schedule, dueAt, now) ? 'missed' : reason,
  );
  const written = await skipTimes(trx, schedule, skipped, next, now);
  if (!written) throw new Error('A schedule changed while its row was locked');
  tellTimes(work, schedule, written);
}

/** Adds to a commit what is told of times that were skipped, of each reason once. */
export function tellTimes(
  work: Work<DispatchTask>,
  schedule: Schedule,
  skipped: readonly SkippedTime[],
): void {
  for (const [reason, times] of Map.groupBy(skipped, (time) => time.reason)) {
    const [first, last] = [times[0], times.at(-1)];
    if (first && last)
      tellSkipped(work, schedule, {
        kind: 'due',
        outcome: 'skipped',
        reason,
        times: times.length,
        first: first.dueAt,
        last: last.dueAt,
      });
  }
}
