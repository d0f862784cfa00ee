import { readDatabaseTime } from '../../db/core/databaseTime.ts';
import { setTimeout as sleep } from 'node:timers/promises';
import { NoChange, type Commit } from '../../db/core/commit.ts';
import type { Knex } from '../../db/core/knex.ts';
import { Schedule } from '../../db/models/Schedule.ts';
import { ScheduleRun } from '../../db/models/ScheduleRun.ts';
import {
  findBufferedRun,
  findRun,
  listUnfinishedJobs,
  updateBufferedRun,
} from '../../db/schedules/schedules.ts';
import { shareHoldLock } from '../../db/retention/holds.ts';
import { findRunsAt, readPurgedUntil } from '../../db/schedules/runs.ts';
import { backfillState, isDecided } from '../../domain/schedules/backfill.ts';
import type { ScheduleRunResult } from '../../domain/dispatch/tasks.ts';
import { isDue } from '../../domain/schedules/occurrences.ts';
import type { ScheduleRunData } from '../../domain/schedules/records.ts';
import {
  delayWithinSecondMs,
  isInFuture,
  isMissed,
  maxDelaySeconds,
  timingOf,
  timingProblemOf,
  type RunReason,
} from '../../domain/schedules/schedules.ts';
import type { Caller } from '../../domain/shared/caller.ts';
import { AppError, notFound } from '../../domain/shared/errors.ts';
import type { Ids } from '../../platform/ids.ts';
import type { UserRights } from '../access/rights.ts';
import type { JobTypes } from '../jobTypes/registry.ts';
import { createDecideLocked } from './decideLocked.ts';
import {
  callerForOwner,
  MAX_CANCELLED_PER_DECISION,
  type DecisionContext,
  type RunDecision,
  type RunDecisions,
} from './runDecision.ts';
import { createRunRecorder } from './runRecorder.ts';
import { recordRun, runSubject, scheduleRecord } from './scheduleAudit.ts';
import type { Schedules } from './schedules.ts';

export type ScheduleRunner = ReturnType<typeof createScheduleRunner>;

type Deps = {
  db: Knex;
  commit: Commit;
  rights: UserRights;
  ids: Ids;
  jobTypes: JobTypes;
  runDecisions: RunDecisions;
  schedules: Schedules;
};

/**
 * Creates the jobs of schedules. Every decision about a run holds the lock on the row of its
 * schedule and is written in the same transaction as the job. So an occurrence has one run, no
 * matter how often and by which process it is delivered.
 */
export function createScheduleRunner(deps: Deps) {
  const { db, ids, jobTypes, runDecisions, schedules } = deps;
  const { examine, createJob, cancelOldest, decide } = runDecisions;
  const decideLocked = createDecideLocked(deps);
  const { record, advanceSchedule } = createRunRecorder({ ids, runDecisions });

  /** Decides a buffered run without regard to overlaps. */
  async function release(context: DecisionContext, run: ScheduleRun): Promise<ScheduleRun> {
    const { work, schedule } = context;
    const found = await examine(context);
    const decided = Object.assign(run, {
      ...('reason' in found
        ? { ...found, jobId: null }
        : { outcome: 'fired', reason: null, jobId: createJob(context, found).id }),
      decidedAt: work.now,
    });
    work.change(updateBufferedRun(decided));
    recordRun(work, schedule, decided);
    await advanceSchedule(context, decided);
    return decided;
  }

  return {
    /**
     * Decides an occurrence. Result `not_due` for a time that is not an occurrence of the record,
     * which Temporal may deliver nevertheless; `already_handled` for an occurrence that has a run;
     * `left_to_others` if only a worker of another version, or with other time zone data, knows the job type or the
     * occurrences: its catch-up decides.
     * Runs that Temporal delays wait for a part of a second first if `isDelayed`. `now` is the time of the
     * database, which is read if it is missing. Error: `unavailable`.
     */
    async fireOccurrence(
      scheduleId: string,
      dueAt: Date,
      { isDelayed = false, now: asked }: { isDelayed?: boolean; now?: Date } = {},
    ): Promise<ScheduleRunResult> {
      const known = await Schedule.query(db).findById(scheduleId).whereNull('deleted_at');
      const now = asked ?? (await readDatabaseTime(db));
      if (!known || isInFuture(dueAt, now)) return { outcome: 'not_due' };
      if (timingProblemOf(known)) return { outcome: 'left_to_others' };
      if (!isDue(timingOf(known), dueAt)) return { outcome: 'not_due' };
      if (isDecided(known, dueAt)) return { outcome: 'already_handled' };
      await jobTypes.refreshUnknown(known.jobType);
      const since = new Date(dueAt.getTime() + maxDelaySeconds(known) * 1_000);
      if (await runDecisions.isLeftToOthers(db, known, { since, now }))
        return { outcome: 'left_to_others' };
      if (isDelayed) await sleep(delayWithinSecondMs(known, Math.random()));
      const run = await decideLocked(scheduleId, AS_OWNER, async (context) => {
        const { trx, schedule } = context;
        if (
          !isDue(timingOf(schedule), dueAt) ||
          isDecided(schedule, dueAt) ||
          (await findRun(trx, scheduleId, 'scheduled', dueAt))
        )
          throw new NoChange();
        const decision = skipDecision(schedule, dueAt, now) ?? (await decide(context));
        const { actorId } = schedule.owner;
        return record(context, decision, { kind: 'scheduled', dueAt, actorId });
      });
      return resultOf(run);
    },

    /**
     * Decides the buffered run of a schedule when all its jobs have ended, or when its policy has become
     * `allowAll`. With the policy `cancelOther`, cancels further jobs that are unfinished. Error: `unavailable`.
     */
    async releaseBuffered(scheduleId: string): Promise<ScheduleRunResult> {
      const released = await decideLocked(scheduleId, AS_OWNER, async (context) => {
        const { work, trx, schedule } = context;
        const run = await findBufferedRun(trx, scheduleId);
        if (!run) throw new NoChange();
        const now = await readDatabaseTime(trx);
        const since = run.decidedAt;
        if (await runDecisions.isLeftToOthers(trx, schedule, { since, now })) throw new NoChange();
        const limit = MAX_CANCELLED_PER_DECISION + 1;
        const unfinished = await listUnfinishedJobs(trx, scheduleId, limit);
        if (unfinished.length === 0 || schedule.overlapPolicy === 'allowAll')
          return release(context, run);
        if (schedule.overlapPolicy !== 'cancelOther') throw new NoChange();
        await cancelOldest(context, unfinished);
        const subject = scheduleRecord.subject(schedule);
        work.audit('schedule.buffer', subject, { after: { runId: run.id } });
        return run;
      });
      return resultOf(released);
    },

    /**
     * Runs a schedule now as its owner, paused or not. Errors: `not_found`, `permission_denied` (also
     * the permission of the job type), `schedule_busy` when the overlap policy skips the run, `schedule_not_runnable`,
     * `quota_exceeded`, `unavailable`.
     */
    async trigger(caller: Caller, scheduleId: string): Promise<ScheduleRunData> {
      const known = await schedules.findToAct(caller, scheduleId, 'schedule:write');
      const { tenantId } = known;
      const request = {
        callerOf: () => ({ ...caller, tenantId }),
        async authorize(schedule: Schedule) {
          await schedules.requireCancelPermission(caller, schedule.overlapPolicy, schedule);
          await schedules.requireToRun(caller, schedule);
        },
      };
      const triggered = await decideLocked(scheduleId, request, async (context) => {
        const { work, schedule } = context;
        const decision = await decide(context);
        if ('reason' in decision)
          throw context.exceeded ?? triggerError(decision.reason, schedule, jobTypes);
        const { actorId } = caller;
        const run = await record(context, decision, { kind: 'trigger', dueAt: work.now, actorId });
        work.result(run.id);
        work.audit('schedule.trigger', runSubject(run.id), { after: { scheduleId } });
        return run;
      });
      if (!triggered) throw notFound('schedule', scheduleId);
      return triggered;
    },

    /**
     * Runs a past occurrence, without regard to overlaps. Result `already_handled` for an
     * occurrence that has run or waits to run, and for one that catch-up can still run. An earlier
     * backfill that could not run is replaced. Result `purged` for an occurrence up to which runs
     * were purged: it may have run, and `held` if a legal hold keeps the earlier backfill: history
     * that is held is neither deleted nor changed. `authorize` throws if who asked for the backfill may not
     * run the schedule as it is then. Errors: `unavailable`, those of `authorize`.
     */
    async backfillOccurrence(
      caller: Caller,
      scheduleId: string,
      dueAt: Date,
      authorize: (schedule: Schedule) => Promise<void>,
    ): Promise<ScheduleRunResult> {
      const request = { callerOf: () => caller, authorize };
      let leftOut: 'purged' | 'held' | undefined;
      const backfilled = await decideLocked(scheduleId, request, async (context) => {
        const { trx, schedule } = context;
        if (!isDue(timingOf(schedule), dueAt)) throw new NoChange();
        // From now on, no hold is created before the commit.
        await shareHoldLock(trx, [schedule.tenantId]);
        const runs = await findRunsAt(trx, scheduleId, [dueAt]);
        const earlierBackfill = runs.find(({ kind }) => kind === 'backfill');
        const state = backfillState(dueAt, {
          nextDueAt: schedule.nextDueAt,
          scheduled: runs.find(({ kind }) => kind === 'scheduled'),
          backfilled: earlierBackfill,
          purgedUntil: await readPurgedUntil(trx, scheduleId),
        });
        if (state === 'purged' || state === 'held') leftOut = state;
        if (state !== 'toRun') throw new NoChange();
        if (earlierBackfill) await ScheduleRun.query(trx).deleteById(earlierBackfill.id);
        const found = await examine(context);
        const decision: RunDecision =
          'reason' in found ? found : { outcome: 'fired', job: createJob(context, found) };
        return record(context, decision, { kind: 'backfill', dueAt, actorId: caller.actorId });
      });
      return leftOut ? { outcome: leftOut } : resultOf(backfilled);
    },
  };
}

const AS_OWNER = { callerOf: callerForOwner };

/** The decision to skip an occurrence whatever the overlap policy; null when it may run. */
function skipDecision(schedule: Schedule, dueAt: Date, now: Date): RunDecision | null {
  if (!schedule.enabled) return { outcome: 'skipped', reason: 'paused' };
  return isMissed(schedule, dueAt, now) ? { outcome: 'skipped', reason: 'missed' } : null;
}

/** The result for a workflow; without a run there was nothing to decide. */
function resultOf(run: ScheduleRun | undefined): ScheduleRunResult {
  if (!run) return { outcome: 'already_handled' };
  const { outcome, reason, jobId } = run;
  return { outcome, ...(reason !== null && { reason }), ...(jobId !== null && { jobId }) };
}

const NOT_RUNNABLE: Partial<Record<RunReason, string>> = {
  job_type_disabled: 'its job type is disabled',
  target_not_found:
    'the target of its jobs no longer exists, belongs to another tenant, or may not be read by its owner',
  reference_not_found:
    'its payload names a record that no longer exists, or that its owner may not read',
};

function triggerError(
  reason: RunReason,
  { id, owner, jobType, payload }: Schedule,
  jobTypes: JobTypes,
): AppError {
  if (reason === 'overlap')
    return new AppError(
      'schedule_busy',
      `A job of schedule ${id} is unfinished, and the overlap policy does not allow another one.`,
    );
  const type = jobTypes.find(jobType);
  if (reason === 'payload_invalid' && type)
    return new AppError(
      'schedule_not_runnable',
      `Schedule ${id} cannot run: ${jobTypes.payloadError(type, payload)}.`,
    );
  const explanation =
    reason === 'owner_denied'
      ? `its owner ${owner.actorId} may no longer run ${jobType} there`
      : (NOT_RUNNABLE[reason] ??
        `this version does not support its job type ${jobType} or its payload`);
  return new AppError('schedule_not_runnable', `Schedule ${id} cannot run: ${explanation}.`);
}
