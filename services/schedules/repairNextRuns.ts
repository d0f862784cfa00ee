import type { WriteUnaudited } from '../../db/core/commit.ts';
import type { Knex } from '../../db/core/knex.ts';
import { Schedule } from '../../db/models/Schedule.ts';
import {
  saveSkippedRuns,
  SCHEDULE_SUMMARY_COLUMNS,
  timesWithRun,
} from '../../db/schedules/schedules.ts';
import { nextOccurrenceOf, timingProblemOf } from '../../domain/schedules/schedules.ts';
import type { Log } from '../../platform/log.ts';
import { mapConcurrently } from '../shared/mapConcurrently.ts';

type Deps = { db: Knex; writeUnaudited: WriteUnaudited; log: Log };

/**
 * Sets the next occurrence of those schedules that have an earlier one by the present time zone data than by those
 * with which it was saved. Later ones need nothing: catch-up moves on from a time that is no occurrence any more.
 */
export async function repairNextRuns(
  { db, writeUnaudited, log }: Deps,
  ids: readonly string[],
  now: Date,
  signal: AbortSignal,
): Promise<void> {
  const schedules = await Schedule.query(db)
    .findByIds([...ids])
    .where('next_due_at', '>', now)
    .select(SCHEDULE_SUMMARY_COLUMNS);
  await mapConcurrently(log, signal, 'repairing the next run of a schedule', schedules, repair);

  async function repair(schedule: Schedule): Promise<boolean> {
    const { id, nextDueAt, timezone } = schedule;
    if (timingProblemOf(schedule)) return false;
    const next = nextOccurrenceOf(schedule, now);
    if (!next || !nextDueAt || next >= nextDueAt) return false;
    // Clocks that differ deliver an occurrence early: it has a run, and the next one is after it.
    if ((await timesWithRun(db, id, next, next)).size > 0) return false;
    await writeUnaudited((on, at) => saveSkippedRuns(on, schedule, [], next, at));
    log.warn(
      { scheduleId: id, timezone, from: nextDueAt, to: next },
      'the next occurrence of a schedule is earlier by the present time zone data',
    );
    return true;
  }
}
