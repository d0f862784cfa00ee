import type { Work } from '../../db/core/commit.ts';
import type { Knex } from '../../db/core/knex.ts';
import type { Schedule } from '../../db/models/Schedule.ts';
import { saveSkippedRuns, timesWithRun, type SkippedRun } from '../../db/schedules/schedules.ts';
import { listOccurrences } from '../../domain/schedules/occurrences.ts';
import { assertDefined } from '../../domain/shared/assert.ts';
import { AppError } from '../../domain/shared/errors.ts';
import {
  isMissed,
  timingOf,
  timingProblemOf,
  type RunReason,
} from '../../domain/schedules/schedules.ts';
import type { Ids } from '../../platform/ids.ts';
import { recordSkipped } from './scheduleAudit.ts';

/** The most occurrences that one change of a schedule can skip: five weeks of every minute. */
export const MAX_SKIPPED_PER_CHANGE = 50_000;

/** The occurrences from `from` to `until` (both inclusive), at most `limit`. */
export const occurrencesFrom = (
  schedule: Schedule,
  from: Date,
  until: Date,
  limit: number,
): Date[] => listOccurrences(timingOf(schedule), new Date(from.getTime() - 1), until, limit);

/**
 * The occurrences from `schedule.nextDueAt` to `until` (both inclusive), at most `limit`. None if they are not known:
 * a schedule that cannot run can be changed and deleted.
 */
export const pendingOccurrences = (schedule: Schedule, until: Date, limit: number): Date[] =>
  schedule.nextDueAt === null || schedule.nextDueAt > until || timingProblemOf(schedule)
    ? []
    : occurrencesFrom(schedule, schedule.nextDueAt, until, limit);

/**
 * The skipped runs to record for occurrences. Occurrences in `withRun` (epoch milliseconds) have a
 * run already and are left out.
 */
export const skippedRunsOf = (
  ids: Ids,
  times: readonly Date[],
  withRun: ReadonlySet<number>,
  reasonOf: (dueAt: Date) => RunReason,
): SkippedRun[] =>
  times
    .filter((dueAt) => !withRun.has(dueAt.getTime()))
    .map((dueAt) => ({ id: ids.at('run', dueAt), dueAt, reason: reasonOf(dueAt) }));

type SkipOptions = {
  reason: RunReason;
  /** The time of the database. */
  now: Date;
  /** The next pending occurrence of the schedule afterwards. */
  nextDueAt: Date | null;
  /** True for occurrences that stay pending. */
  isExcluded?: (dueAt: Date) => boolean;
};

/**
 * Skips the pending occurrences of a schedule up to `now`, before a change removes them. `trx` holds
 * the lock on the schedule. Error: `unavailable` when more than `MAX_SKIPPED_PER_CHANGE` are
 * pending, so that catch-up must record them first.
 */
export async function skipPending(
  work: Work,
  trx: Knex,
  ids: Ids,
  schedule: Schedule,
  { reason, now, nextDueAt, isExcluded = () => false }: SkipOptions,
): Promise<void> {
  if (schedule.nextDueAt === null) return;
  const times = pendingOccurrences(schedule, now, MAX_SKIPPED_PER_CHANGE + 1);
  if (times.length > MAX_SKIPPED_PER_CHANGE) {
    throw new AppError(
      'unavailable',
      'The schedule has too many missed runs. Start a worker, which records them, and try again.',
      { retryAfterSeconds: 60 },
    );
  }
  const withRun = await timesWithRun(trx, schedule.id, schedule.nextDueAt, now);
  const reasonOf = (dueAt: Date): RunReason => {
    if (!schedule.enabled) return 'paused';
    return isMissed(schedule, dueAt, now) ? 'missed' : reason;
  };
  const toSkip = times.filter((dueAt) => !isExcluded(dueAt));
  const skipped = skippedRunsOf(ids, toSkip, withRun, reasonOf);
  const written = await saveSkippedRuns(trx, schedule, skipped, nextDueAt, now);
  if (!written) throw new Error('A schedule changed while its row was locked');
  recordSkippedByReason(work, schedule, written);
}

/** Adds one audit entry and one event for each reason of skipped runs to a commit. */
export function recordSkippedByReason(
  work: Work,
  schedule: Schedule,
  skipped: readonly SkippedRun[],
): void {
  for (const [reason, runs] of Map.groupBy(skipped, (run) => run.reason)) {
    recordSkipped(work, schedule, {
      kind: 'scheduled',
      reason,
      occurrences: runs.length,
      first: assertDefined(runs[0], 'first skipped run').dueAt,
      last: assertDefined(runs.at(-1), 'last skipped run').dueAt,
    });
  }
}
