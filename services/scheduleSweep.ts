import { unlessNothing, NothingChanged, type Commit, type Note } from '../db/commit.ts';
import type { Knex } from '../db/knex.ts';
import { withOutboxRow } from '../db/jobs.ts';
import { Schedule } from '../db/models/Schedule.ts';
import { findReleasable, findUnaccounted, skipTimes, takeUnchecked, timesWithRun, unmirrored } from '../db/schedules.ts';
import { systemCaller } from '../domain/caller.ts';
import { PLATFORM } from '../domain/scope.ts';
import { isMissed, nextDueOf, settleSeconds } from '../domain/schedules.ts';
import type { Clock } from '../platform/clock.ts';
import type { Ids } from '../platform/ids.ts';
import type { Log } from '../platform/log.ts';
import { mirrorSchedule, temporalScheduleId, type CompareMirror, type DispatchTask, type ListMirrors } from '../temporal/contracts.ts';
import { openTimes, skippedTimes, tellSkipped } from './scheduleAccounts.ts';
import type { ScheduleFires } from './scheduleFires.ts';
import { scheduleSubject } from './scheduleTrail.ts';

export type ScheduleSweep = ReturnType<typeof createScheduleSweep>;

type Deps = {
  db: Knex; commit: Commit<DispatchTask>; note: Note; fires: ScheduleFires; ids: Ids; clock: Clock; log: Log; compare: CompareMirror; listMirrors: ListMirrors;
  /** A schedule is compared with its mirror again after this. */
  graceMs: number;
};

const BATCH = 200;
const AT_ONCE = 10;

/** Times due that one statement accounts for. */
const TIMES_AT_ONCE = 1_000;

const MAX_ROUNDS = 1_000;

const CAUSE = 'reconcile';

/** Puts right what lies between schedules, their runs and their mirrors in Temporal. */
export function createScheduleSweep({ db, commit, note, fires, ids, clock, log, compare, listMirrors, graceMs }: Deps) {
  /** Does the same for many, some at once; one that fails is for a later round. Returns how many were put right. */
  async function each<T>(items: readonly T[], signal: AbortSignal, what: string, step: (item: T) => Promise<boolean>): Promise<number> {
    let done = 0;
    for (let at = 0; at < items.length && !signal.aborted; at += AT_ONCE) {
      const results = await Promise.allSettled(items.slice(at, at + AT_ONCE).map(step));
      for (const result of results) {
        if (result.status === 'rejected') log.warn({ err: result.reason as unknown }, `${what} failed and will be tried again`);
        else if (result.value) done += 1;
      }
    }
    return done;
  }

  /** Writes down what was skipped, in an entry of its own unless the schedule was paused, as anybody can see. */
  async function skip(schedule: Schedule, times: readonly Date[], withRun: ReadonlySet<number>, next: Date | null): Promise<void> {
    const skipped = skippedTimes(ids, times, withRun, () => (schedule.enabled ? 'missed' : 'disabled'));
    const ending = next === null;
    if (!ending && (skipped.length === 0 || !schedule.enabled)) {
      await note((on, now) => skipTimes(on, schedule, skipped, next, now));
      return;
    }
    await commit(systemCaller(schedule.tenantId, CAUSE), async (work) => {
      if (!(await skipTimes(await work.trx(), schedule, skipped, next, work.now))) throw new NothingChanged();
      tellSkipped(work, schedule, skipped);
      if (!ending) return;
      work.audit('schedule.end', scheduleSubject(schedule));
      work.dispatch(mirrorSchedule(schedule.id));
    }).catch(unlessNothing(undefined));
  }

  /** Accounts for the next times due of a schedule. True when there may be more. */
  async function account(scheduleId: string): Promise<boolean> {
    const schedule = await Schedule.query(db).findById(scheduleId);
    if (!schedule?.nextDueAt) return false;
    const now = clock.now();
    const until = schedule.enabled ? new Date(now.getTime() - (schedule.jitterSeconds + settleSeconds(schedule)) * 1_000) : now;
    const times = openTimes(schedule, until, TIMES_AT_ONCE);
    const last = times.at(-1);
    if (!last) return false;
    const withRun = await timesWithRun(db, scheduleId, schedule.nextDueAt, last);
    // What can be caught up is fired; up to there, it is too late.
    const late = times.findIndex((dueAt) => schedule.enabled && !withRun.has(dueAt.getTime()) && !isMissed(schedule, dueAt, now));
    const over = late === -1 ? times : times.slice(0, late);
    const dueAt = times[over.length];
    if (over.length > 0) await skip(schedule, over, withRun, dueAt ?? nextDueOf(schedule, last));
    if (dueAt) await fires.fire(scheduleId, dueAt);
    return true;
  }

  async function repair(schedule: Schedule): Promise<boolean> {
    const difference = await compare(schedule.id);
    if (difference === null) return false;
    log.warn({ scheduleId: schedule.id, difference }, 'a Temporal Schedule is not what its record says, and is put right');
    await commit(systemCaller(schedule.tenantId, CAUSE), (work) => {
      work.audit('schedule.repair', scheduleSubject(schedule), { before: { difference } });
      work.dispatch(mirrorSchedule(schedule.id));
    });
    return true;
  }

  return {
    /**
     * Gives every time due that nobody came with a run: fired when there is still time, else skipped with the reason.
     * Returns how many schedules were looked at.
     */
    async account(signal: AbortSignal): Promise<number> {
      let looked = 0;
      // A round in which nothing was done found what fails, and would find it again at once.
      for (let round = 0, done = 1; round < MAX_ROUNDS && done > 0 && !signal.aborted; round++) {
        done = await each(await findUnaccounted(db, clock.now(), BATCH), signal, 'accounting for a schedule', account);
        looked += done;
      }
      return looked;
    },

    /** Fires buffered runs that nothing stands before any more: the call that should have done it was lost. */
    release: async (signal: AbortSignal): Promise<number> =>
      each(await findReleasable(db, BATCH), signal, 'releasing a run', async (id) => (await fires.release(id)).outcome !== 'done_before'),

    /** Makes mirrors that are missing or were changed again, and takes away those without a record. Returns how many. */
    async mirrors(signal: AbortSignal): Promise<number> {
      const now = clock.now();
      const taken = await takeUnchecked(db, { before: new Date(now.getTime() - graceMs), now, limit: BATCH });
      const owed = await withOutboxRow(db, taken.map(({ id }) => temporalScheduleId(id)));
      const repaired = await each(taken.filter(({ id }) => !owed.has(temporalScheduleId(id))), signal, 'comparing a schedule with Temporal', repair);
      const leftBehind = await unmirrored(db, await listMirrors());
      return repaired + (await each(leftBehind, signal, 'taking a Temporal Schedule away', async (id) => {
        if ((await compare(id)) === null) return false;
        await commit(systemCaller(PLATFORM, CAUSE), (work) => {
          work.audit('schedule.repair', scheduleSubject({ id }), { before: { difference: 'not wanted' } });
          work.dispatch(mirrorSchedule(id));
        });
        return true;
      }));
    },
  };
}
