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

type Deps = { db: Knex; writeUnaudited: WriteUnaudited; log: Log };

/**
 * Sets the next occurrence of those schedules that have an earlier one by the present time zone data than by those
 * with which it was saved. Later ones need nothing: catch-up moves on from a time that is no occurrence any more.
 */
export async function repairNextRuns(
  { db, writeUnaudited, log }: Deps,
  ids: readonly string[],
  now: Date,
): Promise<void> {
  const schedules = await Schedule.query(db)
    .findByIds([...ids])
    .where('next_due_at', '>', now)
    .select(SCHEDULE_SUMMARY_COLUMNS);
  for (const schedule of schedules) {
    const { id, nextDueAt, timezone } = schedule;
    if (timingProblemOf(schedule)) continue;
    const next = nextOccurrenceOf(schedule, now);
    if (!next || !nextDueAt || next >= nextDueAt) continue;
    // Clocks that differ deliver an occurrence early: it has a run, and the next one is after it.
    if ((await timesWithRun(db, id, next, next)).size > 0) continue;
    await writeUnaudited((on, at) => saveSkippedRuns(on, schedule, [], next, at));
    log.warn(
      { scheduleId: id, timezone, from: nextDueAt, to: next },
      'the next occurrence of a schedule is earlier by the present time zone data',
    );
  }
}
