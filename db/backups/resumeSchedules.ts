import { listOccurrences } from '../../domain/schedules/occurrences.ts';
import { nextOccurrenceOf, timingOf, timingProblemOf } from '../../domain/schedules/schedules.ts';
import { DAY_MS } from '../../domain/shared/durations.ts';
import { createIds } from '../../platform/ids.ts';
import type { Knex } from '../core/knex.ts';
import { bindArray } from '../core/sql.ts';
import { Schedule } from '../models/Schedule.ts';

const ids = createIds();

/** The most past occurrences of one schedule that get a row in the log. */
const MAX_MISSED = 1_000;

/** Rows that one statement inserts. */
const BATCH = 10_000;

/**
 * Sets the next occurrence of restored schedules. Occurrences up to `now` do not run, since they may have run
 * after the backup: the log has them as missed, or as paused.
 */
export async function resumeSchedules(
  trx: Knex,
  schedules: readonly { id: string; deleted: boolean }[],
  now: Date,
): Promise<void> {
  const restored = schedules.filter(({ deleted }) => !deleted).map(({ id }) => id);
  const found = await Schedule.query(trx).findByIds(restored);
  let missed: MissedRun[] = [];
  for (const schedule of found) {
    missed.push(...missedRunsOf(schedule, now));
    if (missed.length < BATCH) continue;
    await saveMissedRuns(trx, missed, now);
    missed = [];
  }
  await saveMissedRuns(trx, missed, now);
  const next = found.map((schedule) =>
    schedule.deletedAt === null ? nextAfterRestore(schedule, now) : null,
  );
  await trx.raw(
    `UPDATE schedules AS s SET next_due_at = d.next
     FROM unnest(?::text[], ?::timestamptz[]) AS d (id, next) WHERE s.id = d.id`,
    [found.map(({ id }) => id), bindArray(next)],
  );
}

/**
 * If the occurrences of a schedule are not known, a time after all that may have run already: a process that knows them
 * moves it to the next occurrence.
 */
function nextAfterRestore(schedule: Schedule, now: Date): Date | null {
  if (!timingProblemOf(schedule)) return nextOccurrenceOf(schedule, now);
  return schedule.nextDueAt && new Date(now.getTime() + DAY_MS);
}

type MissedRun = { id: string; scheduleId: string; dueAt: Date };

/** The first occurrences that were due at `now` and not decided when the backup was made. */
function missedRunsOf(schedule: Schedule, now: Date): MissedRun[] {
  const { id: scheduleId, nextDueAt, deletedAt } = schedule;
  if (nextDueAt === null || deletedAt !== null || timingProblemOf(schedule)) return [];
  const before = new Date(nextDueAt.getTime() - 1);
  return listOccurrences(timingOf(schedule), before, now, MAX_MISSED).map((dueAt) => ({
    id: ids.at('run', dueAt),
    scheduleId,
    dueAt,
  }));
}

/** Adds runs to the log of their schedules, but for occurrences that have one. */
async function saveMissedRuns(trx: Knex, missed: readonly MissedRun[], now: Date): Promise<void> {
  if (missed.length === 0) return;
  await trx.raw(
    `WITH added AS (
       INSERT INTO schedule_runs (id, schedule_id, tenant_id, kind, due_at, outcome, reason,
                                  caught_up, actor_id, decided_at)
       SELECT m.id, s.id, s.tenant_id, 'scheduled', m.due_at, 'skipped',
              CASE WHEN s.enabled THEN 'missed' ELSE 'paused' END, false, s.owner ->> 'actorId', ?
       FROM unnest(?::text[], ?::text[], ?::timestamptz[]) AS m (id, schedule_id, due_at)
         JOIN schedules AS s ON s.id = m.schedule_id
       ON CONFLICT DO NOTHING RETURNING schedule_id, id
     )
     UPDATE schedules AS s SET last_run_id = greatest(s.last_run_id, a.id)
     FROM (SELECT schedule_id, max(id) AS id FROM added GROUP BY schedule_id) AS a
     WHERE s.id = a.schedule_id`,
    [
      now,
      missed.map(({ id }) => id),
      missed.map(({ scheduleId }) => scheduleId),
      bindArray(missed.map(({ dueAt }) => dueAt)),
    ],
  );
}
