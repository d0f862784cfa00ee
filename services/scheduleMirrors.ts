import type { Commit } from '../db/commit.ts';
import { withOutboxRow } from '../db/jobs/jobs.ts';
import type { Knex } from '../db/core/knex.ts';
import { Schedule } from '../db/models/Schedule.ts';
import { listMirrored, takeUnchecked } from '../db/schedules/schedules.ts';
import { systemCaller } from '../domain/shared/caller.ts';
import { PLATFORM } from '../domain/access/scope.ts';
import type { Clock } from '../platform/clock.ts';
import type { Log } from '../platform/log.ts';
import {
  MAX_MIRRORS,
  mirrorSchedule,
  temporalScheduleId,
  type CompareMirror,
  type DispatchTask,
  type ListMirrors,
} from '../temporal/contracts.ts';
import { inTurns } from './inTurns.ts';
import { scheduleSubject } from './scheduleTrail.ts';

export type ScheduleMirrors = ReturnType<typeof createScheduleMirrors>;

type Deps = {
  db: Knex;
  commit: Commit<DispatchTask>;
  clock: Clock;
  log: Log;
  compare: CompareMirror;
  list: ListMirrors;
  /** A schedule is compared in full again after this. */
  graceMs: number;
};

/** Schedules compared in full in a round: each costs Temporal a query of a workflow. */
const IN_FULL = 50;

/** Makes Temporal Schedules that are missing or were changed again, and takes away those without a record. */
export function createScheduleMirrors({ db, commit, clock, log, compare, list, graceMs }: Deps) {
  async function repair(id: string): Promise<boolean> {
    const difference = await compare(id);
    if (difference === null) return false;
    log.warn(
      { scheduleId: id, difference },
      'a Temporal Schedule is not what its record says, and is put right',
    );
    const schedule = await Schedule.query(db).findById(id).select('tenant_id');
    await commit(systemCaller(schedule?.tenantId ?? PLATFORM, 'reconcile'), (work) => {
      work.audit('schedule.repair', scheduleSubject({ id }), { before: { difference } });
      work.dispatch(mirrorSchedule(id));
    });
    return true;
  }

  return {
    /** One round: all by what a list tells, and some in full. Returns how many were put right. */
    async compare(signal: AbortSignal): Promise<number> {
      const now = clock.now();
      const [wanted, there] = [await listMirrored(db, MAX_MIRRORS), await list()];
      const suspects = new Set(
        await takeUnchecked(db, { before: new Date(now.getTime() - graceMs), now, limit: IN_FULL }),
      );
      for (const [id, { paused }] of wanted) if (there.get(id)?.paused !== paused) suspects.add(id);
      if (wanted.size < MAX_MIRRORS)
        for (const id of there.keys()) if (!wanted.has(id)) suspects.add(id);
      const owed = await withOutboxRow(db, [...suspects].map(temporalScheduleId));
      return inTurns(
        log,
        signal,
        'comparing a schedule with Temporal',
        [...suspects].filter((id) => !owed.has(temporalScheduleId(id))),
        repair,
      );
    },
  };
}
