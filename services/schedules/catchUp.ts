import {
  ignoreNoChange,
  NoChange,
  type Commit,
  type WriteUnaudited,
} from '../../db/core/commit.ts';
import { readDatabaseTime } from '../../db/core/databaseTime.ts';
import type { Knex } from '../../db/core/knex.ts';
import { Schedule } from '../../db/models/Schedule.ts';
import {
  findReleasable,
  findOverdue,
  SCHEDULE_SUMMARY_COLUMNS,
  saveSkippedRuns,
  timesWithRun,
} from '../../db/schedules/schedules.ts';
import { systemCaller } from '../../domain/shared/caller.ts';
import { isDue } from '../../domain/schedules/occurrences.ts';
import {
  isMissed,
  maxDelaySeconds,
  nextOccurrenceOf,
  timingOf,
  timingProblemOf,
  CATCH_UP_DELAY_SECONDS,
} from '../../domain/schedules/schedules.ts';
import { HOUR_MS } from '../../domain/shared/durations.ts';
import type { Ids } from '../../platform/ids.ts';
import type { Log } from '../../platform/log.ts';
import { createLoop } from '../../platform/loop.ts';
import { syncSchedule } from '../../domain/dispatch/tasks.ts';
import { mapConcurrently } from '../shared/mapConcurrently.ts';
import { occurrencesFrom, skippedRunsOf, recordSkippedByReason } from './missedRuns.ts';
import type { ScheduleRunner } from './scheduleRunner.ts';
import { recordIfEnded } from './scheduleAudit.ts';

type Deps = {
  db: Knex;
  commit: Commit;
  writeUnaudited: WriteUnaudited;
  runner: ScheduleRunner;
  ids: Ids;
  log: Log;
  everyMs: number;
  /** False while workers of another version get the work. */
  isCurrentVersion(): boolean;
};

/** Schedules that one round reads. */
const BATCH = 200;

/** Occurrences that one statement skips. */
const OCCURRENCES_PER_BATCH = 1_000;

const MAX_ROUNDS = 1_000;

/** A new rule of a time zone shifts occurrences by less than this. */
const MAX_SHIFT_MS = 3 * HOUR_MS;

/**
 * From when on occurrences are pending. If the next one of the record is none by the present time zone data, what it
 * was before may be shortly before it.
 */
const firstToDecide = (schedule: Schedule, nextDueAt: Date): Date =>
  isDue(timingOf(schedule), nextDueAt)
    ? nextDueAt
    : new Date(Math.max(nextDueAt.getTime() - MAX_SHIFT_MS, schedule.updatedAt.getTime()));

const CAUSE = 'reconcile';

/**
 * Runs or skips occurrences that Temporal did not deliver in time: because of an outage, a backlog,
 * a manual change, or older time zone data. Any number of processes may do so concurrently.
 */
export function createCatchUp({
  db,
  commit,
  writeUnaudited,
  runner,
  ids,
  log,
  everyMs,
  isCurrentVersion,
}: Deps) {
  /**
   * Records skipped occurrences and sets the next pending one. Missed occurrences and the end of a
   * schedule are audited; occurrences of a paused schedule are not, since the pause was.
   */
  async function recordMissed(
    schedule: Schedule,
    occurrences: readonly Date[],
    withRun: ReadonlySet<number>,
    next: Date | null,
  ): Promise<void> {
    const reason = schedule.enabled ? 'missed' : 'paused';
    const skipped = skippedRunsOf(ids, occurrences, withRun, () => reason);
    const isEnding = next === null;
    if (!isEnding && (skipped.length === 0 || !schedule.enabled)) {
      await writeUnaudited((on, now) => saveSkippedRuns(on, schedule, skipped, next, now));
      return;
    }
    await commit(systemCaller(schedule.tenantId, CAUSE), async (work) => {
      const saved = await saveSkippedRuns(await work.trx(), schedule, skipped, next, work.now);
      if (!saved || (saved.length === 0 && !isEnding)) throw new NoChange();
      recordSkippedByReason(work, schedule, saved);
      if (recordIfEnded(work, schedule, { from: schedule.nextDueAt, to: next }))
        work.dispatch(syncSchedule(schedule));
    }).catch(ignoreNoChange(undefined));
  }

  /** Decides the occurrences of a schedule that are pending at `now`. True when there may be more. */
  async function catchUpSchedule(scheduleId: string, now: Date): Promise<boolean> {
    const schedule = await Schedule.query(db).findById(scheduleId).select(SCHEDULE_SUMMARY_COLUMNS);
    if (!schedule?.nextDueAt) return false;
    const problem = timingProblemOf(schedule);
    if (problem !== null) {
      // A process that knows its occurrences decides them.
      log.warn({ scheduleId, problem }, 'the occurrences of a schedule are not known');
      return false;
    }
    const delaySeconds = schedule.enabled ? maxDelaySeconds(schedule) + CATCH_UP_DELAY_SECONDS : 0;
    const until = new Date(now.getTime() - delaySeconds * 1_000);
    if (schedule.nextDueAt > until) return false;
    const from = firstToDecide(schedule, schedule.nextDueAt);
    const pending = occurrencesFrom(schedule, from, until, OCCURRENCES_PER_BATCH);
    const last = pending.at(-1) ?? until;
    const withRun = await timesWithRun(db, scheduleId, from, last);
    const canRun = (dueAt: Date) =>
      schedule.enabled && !withRun.has(dueAt.getTime()) && !isMissed(schedule, dueAt, now);
    const firstToRun = pending.find(canRun);
    const toSkip = firstToRun ? pending.filter((dueAt) => dueAt < firstToRun) : pending;
    if (firstToRun?.getTime() !== schedule.nextDueAt.getTime())
      await recordMissed(schedule, toSkip, withRun, firstToRun ?? nextOccurrenceOf(schedule, last));
    if (!firstToRun) return true;
    const { outcome } = await runner.fireOccurrence(scheduleId, firstToRun, { now });
    return outcome !== 'left_to_others' && outcome !== 'not_due';
  }

  const stopping = new AbortController();

  /** Runs every overdue occurrence that is inside its catch-up window, and skips the others. */
  async function catchUpAll(signal: AbortSignal): Promise<void> {
    // A round without progress has found only schedules that fail, and would find them again.
    for (let round = 0, done = 1; round < MAX_ROUNDS && done > 0 && !signal.aborted; round++) {
      const now = await readDatabaseTime(db);
      done = await mapConcurrently(
        log,
        signal,
        'catching up a schedule',
        await findOverdue(db, now, BATCH),
        (id) => catchUpSchedule(id, now),
      );
    }
  }

  /** Runs buffered runs that wait for no job: their start was lost, or the overlap policy has changed. */
  const releaseAll = async (signal: AbortSignal): Promise<void> =>
    void (await mapConcurrently(
      log,
      signal,
      'releasing a buffered run',
      await findReleasable(db, BATCH),
      async (id) => (await runner.releaseBuffered(id)).outcome !== 'already_handled',
    ));

  const loop = createLoop({ name: 'schedules', everyMs, log }, async () => {
    if (!isCurrentVersion()) return false;
    await catchUpAll(stopping.signal);
    await releaseAll(stopping.signal);
    return false;
  });

  return {
    catchUpAll,
    releaseAll,

    start: loop.start,

    /** Resolves when the current round has ended. */
    async stop(): Promise<void> {
      stopping.abort();
      await loop.stop();
    },
  };
}
