import type { Work } from '../../db/core/commit.ts';
import type { Knex } from '../../db/core/knex.ts';
import { Schedule } from '../../db/models/Schedule.ts';
import { syncSchedule } from '../../domain/dispatch/tasks.ts';
import { isDue } from '../../domain/schedules/occurrences.ts';
import {
  hasAllRuns,
  nextKnownOf,
  timingOf,
  timingProblemOf,
} from '../../domain/schedules/schedules.ts';
import type { Ids } from '../../platform/ids.ts';
import { MAX_SKIPPED_PER_CHANGE, pendingOccurrences, skipPending } from './missedRuns.ts';
import type { RunDecisions } from './runDecision.ts';
import { recordIfEnded, scheduleRecord } from './scheduleAudit.ts';

/** A change of these fields skips pending occurrences. */
const CALENDAR_FIELDS = ['cronExpression', 'timezone', 'enabled'] as const;
/** A change of one of the others keeps pending occurrences inside the new bounds. */
const TIMING_FIELDS = [...CALENDAR_FIELDS, 'startAt', 'endAt', 'maxRuns'] as const;

type SaveOptions = {
  changed: Partial<Schedule>;
  /** The audit action is `schedule.<verb>`. */
  verb: 'update' | 'pause' | 'resume';
  /** By the clock of the database; the time at which the change was checked. */
  now: Date;
  /** Added to the audit entry. */
  details?: object;
};

export type SaveSchedule = ReturnType<typeof createSaveSchedule>;

export function createSaveSchedule({
  ids,
  runDecisions,
}: {
  ids: Ids;
  runDecisions: RunDecisions;
}) {
  /**
   * Skips pending occurrences that a change of the timing removes. Returns the next occurrence of
   * the changed schedule, or null.
   */
  async function recalculateNextRun(
    work: Work,
    trx: Knex,
    before: Schedule,
    after: Schedule,
    now: Date,
  ): Promise<Date | null> {
    const differs = (field: (typeof TIMING_FIELDS)[number]) =>
      before[field]?.valueOf() !== after[field]?.valueOf();
    if (!TIMING_FIELDS.some(differs)) return before.nextDueAt;
    const next = nextKnownOf(after, now);
    const keepsPending =
      next !== null && timingProblemOf(after) === null && !CALENDAR_FIELDS.some(differs);
    const isStillDue = (dueAt: Date) => keepsPending && isDue(timingOf(after), dueAt);
    const firstPending = pendingOccurrences(before, now, MAX_SKIPPED_PER_CHANGE).find(isStillDue);
    const nextDueAt = firstPending ?? next;
    await skipPending(work, trx, ids, before, {
      reason: after.enabled ? 'changed' : 'paused',
      now,
      nextDueAt,
      isExcluded: isStillDue,
    });
    return nextDueAt;
  }

  /** Saves changed fields of a schedule whose row is locked, with audit entry, event and sync. */
  return async function saveSchedule(
    work: Work,
    trx: Knex,
    before: Schedule,
    { changed, verb, now, details }: SaveOptions,
  ): Promise<Schedule> {
    const after = Object.assign(new Schedule(), before, changed);
    const nextDueAt = await recalculateNextRun(work, trx, before, after, now);
    const isPaused = before.enabled && !after.enabled;
    if (isPaused || hasAllRuns(after))
      await runDecisions.skipBuffered(work, trx, before, isPaused ? 'paused' : 'ended', {
        kinds: ['scheduled'],
      });
    if (after.overlapPolicy === 'skip')
      await runDecisions.skipBuffered(work, trx, before, 'overlap');
    const saved = await Schedule.query(trx).patchAndFetchById(before.id, {
      ...changed,
      nextDueAt,
      updatedAt: work.now,
      version: before.version + 1,
    });
    scheduleRecord.acted(work, verb, saved, {
      before,
      after: saved,
      extra: { payloadChanged: changed.payload !== undefined, ...details },
    });
    scheduleRecord.emit(work, 'schedule.updated', saved);
    recordIfEnded(work, saved, { from: before.nextDueAt, to: nextDueAt });
    work.dispatch(syncSchedule(saved));
    return saved;
  };
}

const RESUMED = { pausedAt: null, pausedBy: null, pauseReason: null };

/** The fields that pausing or resuming a schedule sets. */
export const enabledChange = (
  enabled: boolean,
  actorId: string,
  reason: string | null,
  now: Date,
): Pick<Schedule, 'enabled' | 'pausedAt' | 'pausedBy' | 'pauseReason'> =>
  enabled
    ? { enabled, ...RESUMED }
    : { enabled, pausedAt: now, pausedBy: actorId, pauseReason: reason };
