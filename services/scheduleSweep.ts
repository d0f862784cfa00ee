import { unlessNothing, NothingChanged, type Commit, type Note } from '../db/commit.ts';
import type { Knex } from '../db/core/knex.ts';
import { Schedule } from '../db/models/Schedule.ts';
import {
  findReleasable,
  findUnaccounted,
  SCHEDULE_SUMMARY_COLUMNS,
  skipTimes,
  timesWithRun,
} from '../db/schedules/schedules.ts';
import { systemCaller } from '../domain/shared/caller.ts';
import { isMissed, nextDueOf, SETTLE_SECONDS } from '../domain/schedules/schedules.ts';
import type { Clock } from '../platform/clock.ts';
import type { Ids } from '../platform/ids.ts';
import type { Log } from '../platform/log.ts';
import { startLoop, type Loop } from '../platform/loop.ts';
import { mirrorSchedule, type DispatchTask } from '../temporal/contracts.ts';
import { inTurns } from './inTurns.ts';
import { openTimes, skippedTimes, tellTimes } from './scheduleAccounts.ts';
import type { ScheduleFires } from './scheduleFires.ts';
import { scheduleSubject } from './scheduleTrail.ts';

type Deps = {
  db: Knex;
  commit: Commit<DispatchTask>;
  note: Note;
  fires: ScheduleFires;
  ids: Ids;
  clock: Clock;
  log: Log;
  everyMs: number;
};

const BATCH = 200;

/** Times due that one statement accounts for. */
const TIMES_AT_ONCE = 1_000;

const MAX_ROUNDS = 1_000;

const CAUSE = 'reconcile';

/**
 * Looks after times due that Temporal did not come with in time: it was away or busy, somebody has meddled, or its
 * calendar knows less of a change of the clocks. Any number of processes may do so.
 */
export function createScheduleSweep({ db, commit, note, fires, ids, clock, log, everyMs }: Deps) {
  /** Writes down what was skipped, in an entry of its own unless the schedule was paused, as anybody can see. */
  async function skip(
    schedule: Schedule,
    times: readonly Date[],
    withRun: ReadonlySet<number>,
    next: Date | null,
  ): Promise<void> {
    const skipped = skippedTimes(ids, times, withRun, () =>
      schedule.enabled ? 'missed' : 'disabled',
    );
    const ending = next === null;
    if (!ending && (skipped.length === 0 || !schedule.enabled)) {
      await note((on, now) => skipTimes(on, schedule, skipped, next, now));
      return;
    }
    await commit(systemCaller(schedule.tenantId, CAUSE), async (work) => {
      const written = await skipTimes(await work.trx(), schedule, skipped, next, work.now);
      if (!written) throw new NothingChanged();
      tellTimes(work, schedule, written);
      if (ending) {
        work.audit('schedule.end', scheduleSubject(schedule));
        work.dispatch(mirrorSchedule(schedule.id));
      } else if (written.length === 0) throw new NothingChanged();
    }).catch(unlessNothing(undefined));
  }

  /** Accounts for the next times due of a schedule. True when there may be more. */
  async function account(scheduleId: string): Promise<boolean> {
    const schedule = await Schedule.query(db).findById(scheduleId).select(SCHEDULE_SUMMARY_COLUMNS);
    if (!schedule?.nextDueAt) return false;
    const now = clock.now();
    const until = schedule.enabled
      ? new Date(now.getTime() - (schedule.jitterSeconds + SETTLE_SECONDS) * 1_000)
      : now;
    const times = openTimes(schedule, until, TIMES_AT_ONCE);
    const last = times.at(-1);
    if (!last) return false;
    const withRun = await timesWithRun(db, scheduleId, schedule.nextDueAt, last);
    // What can be caught up is fired; up to there, it is too late.
    const late = times.findIndex(
      (dueAt) =>
        schedule.enabled && !withRun.has(dueAt.getTime()) && !isMissed(schedule, dueAt, now),
    );
    const over = late === -1 ? times : times.slice(0, late);
    const dueAt = times[over.length];
    if (over.length > 0) await skip(schedule, over, withRun, dueAt ?? nextDueOf(schedule, last));
    if (dueAt) await fires.fire(scheduleId, dueAt);
    return true;
  }

  let loop: Loop | undefined;
  const stopping = new AbortController();

  /** Gives every time due that nobody came with a run: fired when there is still time, else skipped with the reason. */
  async function accountForAll(signal: AbortSignal): Promise<void> {
    // A round in which nothing was done found what fails, and would find it again at once.
    for (let round = 0, done = 1; round < MAX_ROUNDS && done > 0 && !signal.aborted; round++) {
      done = await inTurns(
        log,
        signal,
        'accounting for a schedule',
        await findUnaccounted(db, clock.now(), BATCH),
        account,
      );
    }
  }

  /** Fires buffered runs that nothing stands before any more: the call that should have done it was lost. */
  const releaseAll = async (signal: AbortSignal): Promise<void> =>
    void (await inTurns(
      log,
      signal,
      'releasing a run',
      await findReleasable(db, BATCH),
      async (id) => (await fires.release(id)).outcome !== 'done_before',
    ));

  return {
    account: accountForAll,
    release: releaseAll,

    start(): void {
      loop = startLoop({ name: 'schedules', everyMs, log }, async () => {
        await accountForAll(stopping.signal);
        await releaseAll(stopping.signal);
        return false;
      });
    },

    /** Resolves when the round that runs has ended. */
    async stop(): Promise<void> {
      stopping.abort();
      await loop?.stop();
    },
  };
}
