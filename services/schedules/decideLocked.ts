import { ignoreNoChange, type Commit } from '../../db/core/commit.ts';
import type { Knex } from '../../db/core/knex.ts';
import { Schedule } from '../../db/models/Schedule.ts';
import { lockSchedule } from '../../db/schedules/schedules.ts';
import type { Caller } from '../../domain/shared/caller.ts';
import { isQuotaExceeded, type AppError } from '../../domain/shared/errors.ts';
import type { UserRights } from '../access/rights.ts';
import type { JobTypes } from '../jobTypes/registry.ts';
import { ConcurrentChange, retryChanged } from './retryChanged.ts';
import type { DecisionContext } from './runDecision.ts';

type Deps = { db: Knex; commit: Commit; rights: UserRights; jobTypes: JobTypes };

type Request = {
  callerOf(schedule: Schedule): Caller;
  /** Throws if the decision is not allowed. It is made about the schedule that this was called with. */
  authorize?(schedule: Schedule): Promise<void>;
};

export function createDecideLocked({ db, commit, rights, jobTypes }: Deps) {
  /** Returns undefined when `decide` throws `NoChange`. Error: `ConcurrentChange`. */
  async function attempt<T>(
    known: Schedule,
    caller: Caller,
    decide: (context: DecisionContext) => Promise<T>,
    exceeded: AppError | undefined,
  ): Promise<T | undefined> {
    const ownerRights = await rights.forAuthority(known.owner);
    const decided = commit(caller, async (work) => {
      const trx = await work.trx();
      const schedule = await lockSchedule(trx, known.id);
      if (schedule?.version !== known.version) throw new ConcurrentChange();
      return decide({ work, trx, schedule, ownerRights, ...(exceeded && { exceeded }) });
    });
    return decided.catch(ignoreNoChange(undefined));
  }

  /**
   * Commits a decision about a schedule with its row locked. The rights of the owner and of who asks are
   * read before the lock is taken, and again if the schedule changes in between. When the job exceeds a
   * quota, `decide` is called again with that error, since the run must be recorded.
   *
   * Returns undefined when there is no such schedule, or when `decide` throws `NoChange`. Error:
   * `unavailable` when the schedule keeps changing; those of `authorize`.
   */
  return async function decideLocked<T>(
    scheduleId: string,
    { callerOf, authorize }: Request,
    decide: (context: DecisionContext) => Promise<T>,
  ): Promise<T | undefined> {
    let exceeded: AppError | undefined;
    return retryChanged(async () => {
      const known = await Schedule.query(db).findById(scheduleId).whereNull('deleted_at');
      if (!known) return undefined;
      await jobTypes.refreshUnknown(known.jobType);
      await authorize?.(known);
      const caller = callerOf(known);
      try {
        return await attempt(known, caller, decide, exceeded);
      } catch (error) {
        if (!isQuotaExceeded(error) || exceeded) throw error;
        exceeded = error;
        return attempt(known, caller, decide, exceeded);
      }
    });
  };
}
