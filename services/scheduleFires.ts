import { NothingChanged, unlessNothing, type Commit, type Work } from '../db/commit.ts';
import type { Knex } from '../db/core/knex.ts';
import { Schedule } from '../db/models/Schedule.ts';
import { ScheduleRun } from '../db/models/ScheduleRun.ts';
import { bufferedRun, lockSchedule, unfinishedJobs } from '../db/schedules/schedules.ts';
import type { Caller } from '../domain/shared/caller.ts';
import { isDue } from '../domain/schedules/occurrences.ts';
import { AppError, notFound } from '../domain/shared/errors.ts';
import type { Rights } from '../domain/access/scope.ts';
import {
  isAhead,
  isCaughtUp,
  isMissed,
  nextDueOf,
  timingOf,
  type RunKind,
  type RunReason,
} from '../domain/schedules/schedules.ts';
import type { Ids } from '../platform/ids.ts';
import { mirrorSchedule, type DispatchTask, type FireResult } from '../temporal/contracts.ts';
import type { UserRights } from './access/rights.ts';
import type { Schedules } from './schedules.ts';
import { closeTimes } from './scheduleAccounts.ts';
import { runSubject, scheduleSubject, tellRun } from './scheduleTrail.ts';
import {
  asOwner,
  CANCEL_AT_ONCE,
  type ScheduleVerdicts,
  type Verdict,
} from './scheduleVerdicts.ts';

export type ScheduleFires = ReturnType<typeof createScheduleFires>;

type Deps = {
  db: Knex;
  commit: Commit<DispatchTask>;
  rights: UserRights;
  ids: Ids;
  verdicts: ScheduleVerdicts;
  schedules: Schedules;
};

/** What a run is for: when it was due, and who asked for it. */
type Occasion = { kind: RunKind; dueAt: Date; actorId: string; runId?: string };

/**
 * Makes the jobs of schedules. Every decision about a run is made with the row of its schedule locked, and written
 * down together with the job: a time due has one run, whoever comes with it and how often.
 */
export function createScheduleFires({ db, commit, rights, ids, verdicts, schedules }: Deps) {
  const { hindrance, makeJob, cancelSome, dropBuffered, decide } = verdicts;
  const find = (id: string) => Schedule.query(db).findById(id).whereNull('deleted_at');

  /** Writes a run down, and tells of it. */
  function record(
    work: Work<DispatchTask>,
    schedule: Schedule,
    verdict: Verdict,
    { kind, dueAt, actorId, runId = ids.at('run', dueAt) }: Occasion,
  ): ScheduleRun {
    const { now } = work;
    const jobId = verdict.outcome === 'fired' ? verdict.job.id : null;
    const reason = 'reason' in verdict ? verdict.reason : null;
    const caughtUp =
      kind === 'due' && jobId !== null && isCaughtUp(schedule.jitterSeconds, dueAt, now);
    const run = work.insert(ScheduleRun, {
      id: runId,
      scheduleId: schedule.id,
      tenantId: schedule.tenantId,
      kind,
      dueAt,
      outcome: verdict.outcome,
      reason,
      caughtUp,
      jobId,
      actorId,
      decidedAt: now,
    });
    tellRun(work, schedule, run);
    return run;
  }

  /** Notes on the schedule that a run was decided; one that has made all its jobs, or is due no more, leaves Temporal. */
  async function advance(
    work: Work<DispatchTask>,
    trx: Knex,
    schedule: Schedule,
    run: ScheduleRun,
  ): Promise<void> {
    const runCount = schedule.runCount + (run.kind === 'due' && run.outcome === 'fired' ? 1 : 0);
    const isNext = run.kind === 'due' && schedule.nextDueAt?.getTime() === run.dueAt.getTime();
    const from = isNext ? run.dueAt : new Date((schedule.nextDueAt?.getTime() ?? 0) - 1);
    const nextDueAt = schedule.nextDueAt && nextDueOf(schedule, from, runCount);
    if (schedule.nextDueAt && !nextDueAt) {
      // That was the last job: what was due besides, and what waits, will not come any more.
      await closeTimes(work, trx, ids, schedule, {
        reason: 'ended',
        next: null,
        except: (dueAt) => dueAt.getTime() === run.dueAt.getTime(),
      });
      if (run.outcome !== 'buffered') await dropBuffered(work, trx, schedule, 'ended', ['due']);
      work.dispatch(mirrorSchedule(schedule.id));
    }
    const lastRunId = (schedule.lastRunId ?? '') > run.id ? schedule.lastRunId : run.id;
    await Schedule.query(trx).findById(schedule.id).patch({ runCount, nextDueAt, lastRunId });
  }

  type Decision<T> = (
    work: Work<DispatchTask>,
    trx: Knex,
    schedule: Schedule,
    held: Rights,
  ) => Promise<T>;

  /**
   * Runs a decision in a commit, with the schedule locked and the rights that its owner holds. What was read before it is
   * read again when the schedule was changed meanwhile. Undefined when there is none, or no decision to make.
   */
  async function deciding<T>(
    scheduleId: string,
    callerOf: (schedule: Schedule) => Caller,
    decision: Decision<T>,
  ): Promise<T | undefined> {
    for (let tries = 1; ; tries++) {
      const known = await find(scheduleId);
      if (!known) return undefined;
      const held = await rights.ofAuthority(known.owner);
      const decided = commit(callerOf(known), async (work) => {
        const trx = await work.trx();
        const schedule = await lockSchedule(trx, scheduleId);
        if (schedule?.version !== known.version) throw new Moved();
        return decision(work, trx, schedule, held);
      });
      try {
        return await decided.catch(unlessNothing(undefined));
      } catch (error) {
        if (!(error instanceof Moved)) throw error;
        if (tries === MAX_TRIES)
          throw new AppError(
            'unavailable',
            'The schedule is being changed again and again. Try again.',
            { retryAfterSeconds: 1 },
          );
      }
    }
  }

  const runOf = async (
    trx: Knex,
    scheduleId: string,
    kind: RunKind,
    dueAt: Date,
  ): Promise<ScheduleRun | undefined> =>
    ScheduleRun.query(trx).findOne({ schedule_id: scheduleId, kind, due_at: dueAt });

  return {
    /**
     * Fires a time due, unless it has a run already. A time that Temporal takes for one and the record does not is left
     * alone: the record decides.
     */
    async fire(scheduleId: string, dueAt: Date): Promise<FireResult> {
      const known = await find(scheduleId);
      if (!known || isAhead(dueAt, new Date()) || !isDue(timingOf(known), dueAt))
        return { outcome: 'not_due' };
      if (isDone(known, dueAt)) return { outcome: 'done_before' };
      const fired = await deciding(
        scheduleId,
        asOwner,
        async (work, trx, schedule, held): Promise<FireResult> => {
          if (
            !isDue(timingOf(schedule), dueAt) ||
            isDone(schedule, dueAt) ||
            (await runOf(trx, scheduleId, 'due', dueAt))
          )
            throw new NothingChanged();
          const skipped = !schedule.enabled
            ? ('disabled' as const)
            : isMissed(schedule, dueAt, work.now)
              ? ('missed' as const)
              : null;
          const verdict: Verdict = skipped
            ? { outcome: 'skipped', reason: skipped }
            : await decide(work, trx, schedule, held);
          const run = record(work, schedule, verdict, {
            kind: 'due',
            dueAt,
            actorId: schedule.owner.actorId,
          });
          await advance(work, trx, schedule, run);
          return resultOf(run);
        },
      );
      return fired ?? { outcome: 'done_before' };
    },

    /** Looks again at a run that has waited for a job of its schedule to end. Nothing, while another has not. */
    async release(scheduleId: string): Promise<FireResult> {
      const released = await deciding(
        scheduleId,
        asOwner,
        async (work, trx, schedule, held): Promise<FireResult> => {
          const run = await bufferedRun(trx, scheduleId);
          if (!run) throw new NothingChanged();
          const unfinished = await unfinishedJobs(trx, scheduleId, CANCEL_AT_ONCE + 1);
          if (unfinished.length > 0) {
            if (schedule.overlapPolicy !== 'cancelOther') throw new NothingChanged();
            await cancelSome(work, trx, unfinished);
            work.audit('schedule.buffer', scheduleSubject(schedule), { after: { runId: run.id } });
            return { outcome: 'buffered' };
          }
          const hindered = hindrance(schedule, held);
          const jobId = hindered ? null : makeJob(work, schedule).id;
          const decided = Object.assign(run, {
            outcome: hindered?.outcome ?? 'fired',
            jobId,
            reason: hindered?.reason ?? null,
            decidedAt: work.now,
          });
          work.change(runDecided(decided));
          tellRun(work, schedule, decided);
          await advance(work, trx, schedule, decided);
          return resultOf(decided);
        },
      );
      return released ?? { outcome: 'done_before' };
    },

    /**
     * Fires a schedule now, paused or not, as its owner. Errors: `not_found`, `permission_denied`, `schedule_busy` when a job
     * of it has not ended and the policy is to skip, `schedule_cannot_run`, `unavailable`.
     */
    async trigger(caller: Caller, scheduleId: string): Promise<ScheduleRun> {
      const { tenantId, overlapPolicy } = await schedules.findToAct(
        caller,
        scheduleId,
        'schedule:write',
      );
      await schedules.requireCancel(caller, { overlapPolicy, tenantId });
      const triggered = await deciding(
        scheduleId,
        () => ({ ...caller, tenantId }),
        async (work, trx, schedule, held) => {
          // First, since a repeated request is answered with what its first entry is about.
          const runId = ids.at('run', work.now);
          work.audit('schedule.trigger', runSubject(runId), { after: { scheduleId } });
          const verdict = await decide(work, trx, schedule, held);
          if ('reason' in verdict) throw refusal(verdict.reason, schedule);
          const run = record(work, schedule, verdict, {
            kind: 'trigger',
            dueAt: work.now,
            actorId: caller.actorId,
            runId,
          });
          await advance(work, trx, schedule, run);
          return run;
        },
      );
      if (!triggered) throw notFound('schedule', scheduleId);
      return triggered;
    },

    /**
     * Makes the job of a time that lies in the past; overlapping ones are not kept from each other. A time that can fire
     * still is left to that, and one that has fired is left alone. One that could not be backfilled may be again.
     */
    async backfill(caller: Caller, scheduleId: string, dueAt: Date): Promise<FireResult> {
      const filled = await deciding(
        scheduleId,
        () => caller,
        async (work, trx, schedule, held): Promise<FireResult> => {
          if (!isDue(timingOf(schedule), dueAt)) throw new NothingChanged();
          const [due, before] = [
            await runOf(trx, scheduleId, 'due', dueAt),
            await runOf(trx, scheduleId, 'backfill', dueAt),
          ];
          const open = !due && !isDone(schedule, dueAt);
          if (
            open ||
            [due, before].some((run) => run?.outcome === 'fired' || run?.outcome === 'buffered')
          )
            throw new NothingChanged();
          if (before) await ScheduleRun.query(trx).deleteById(before.id);
          const verdict: Verdict = hindrance(schedule, held) ?? {
            outcome: 'fired',
            job: makeJob(work, schedule),
          };
          const run = record(work, schedule, verdict, {
            kind: 'backfill',
            dueAt,
            actorId: caller.actorId,
          });
          await advance(work, trx, schedule, run);
          return resultOf(run);
        },
      );
      return filled ?? { outcome: 'done_before' };
    },
  };
}

/** The schedule is not as it was read. */
class Moved extends Error {}
const MAX_TRIES = 5;

/** True for a time that is accounted for. */
const isDone = ({ nextDueAt }: Schedule, dueAt: Date): boolean =>
  nextDueAt === null || dueAt < nextDueAt;

const resultOf = ({ outcome, reason, jobId }: ScheduleRun): FireResult => ({
  outcome,
  ...(reason !== null && { reason }),
  ...(jobId !== null && { jobId }),
});

/** The end of a wait. The run refers to a job of the same statement. */
const runDecided = ({ id, outcome, reason, jobId, decidedAt }: ScheduleRun) => ({
  topics: [],
  sql: (name: string) =>
    `${name} AS (UPDATE schedule_runs SET outcome = ?, reason = ?, job_id = ?, decided_at = ? WHERE id = ? AND outcome = 'buffered' RETURNING id)`,
  bindings: [outcome, reason, jobId, decidedAt, id],
});

function refusal(reason: RunReason, { id, owner, jobType }: Schedule): AppError {
  if (reason === 'overlap')
    return new AppError(
      'schedule_busy',
      `A job of schedule ${id} has not ended, and its overlap policy keeps another one from beginning.`,
    );
  const why =
    reason === 'owner_denied'
      ? `its owner ${owner.actorId} may no longer run ${jobType} there`
      : `its payload or job type ${jobType} is of no use to this version`;
  return new AppError('schedule_cannot_run', `Schedule ${id} cannot run: ${why}.`);
}
