import type { Commit, WriteUnaudited } from '../../db/core/commit.ts';
import { readDatabaseTime } from '../../db/core/databaseTime.ts';
import { withPendingTask } from '../../db/core/outbox.ts';
import type { Knex } from '../../db/core/knex.ts';
import { Schedule } from '../../db/models/Schedule.ts';
import { listForTemporal, claimUnchecked } from '../../db/schedules/schedules.ts';
import { systemCaller } from '../../domain/shared/caller.ts';
import { PLATFORM } from '../../domain/access/scope.ts';
import type { Log } from '../../platform/log.ts';
import {
  MAX_TEMPORAL_SCHEDULES,
  syncSchedule,
  type CompareTemporalSchedule,
  type ListTemporalSchedules,
} from '../../domain/dispatch/tasks.ts';
import { temporalScheduleId } from '../../domain/dispatch/workflowIds.ts';
import { mapConcurrently } from '../shared/mapConcurrently.ts';
import { repairNextRuns } from './repairNextRuns.ts';
import { scheduleRecord } from './scheduleAudit.ts';

export type TemporalSync = ReturnType<typeof createTemporalSync>;

type Deps = {
  db: Knex;
  commit: Commit;
  writeUnaudited: WriteUnaudited;
  log: Log;
  compareWithTemporal: CompareTemporalSchedule;
  listTemporalSchedules: ListTemporalSchedules;
  /** The minimum time between two full comparisons of a schedule, in milliseconds. */
  graceMs: number;
};

/** Schedules compared in full in one round. Each full comparison queries a workflow in Temporal. */
const FULL_COMPARISONS = 50;

/**
 * Repairs Temporal Schedules that are missing or changed, deletes those without a record, and repairs the next
 * occurrences of records after a change of the time zone data.
 */
export function createTemporalSync({
  db,
  commit,
  writeUnaudited,
  log,
  compareWithTemporal,
  listTemporalSchedules,
  graceMs,
}: Deps) {
  async function repair(id: string): Promise<boolean> {
    const difference = await compareWithTemporal(id);
    if (difference === null) return false;
    log.warn(
      { scheduleId: id, difference },
      'a Temporal Schedule differs from its record and is repaired',
    );
    const schedule = await Schedule.query(db).findById(id).select('tenant_id');
    const tenantId = schedule?.tenantId ?? PLATFORM;
    await commit(systemCaller(tenantId, 'reconcile'), (work) => {
      work.audit('schedule.repair', scheduleRecord.subject({ id }), { before: { difference } });
      work.dispatch(syncSchedule({ id, tenantId }));
    });
    return true;
  }

  return {
    /**
     * One round: compares all schedules by the list that Temporal returns, and some in full.
     * Returns the number of repaired schedules.
     */
    async reconcile(signal: AbortSignal): Promise<number> {
      const now = await readDatabaseTime(db);
      const expected = await listForTemporal(db, MAX_TEMPORAL_SCHEDULES);
      const existing = await listTemporalSchedules();
      const claimed = await claimUnchecked(db, {
        before: new Date(now.getTime() - graceMs),
        now,
        limit: FULL_COMPARISONS,
      });
      await repairNextRuns({ db, writeUnaudited, log }, claimed, now, signal);
      const suspects = new Set(claimed);
      // At its limit, a list says nothing about what is not in it.
      const [knowsAll, listsAll] = [expected, existing].map(
        ({ size }) => size < MAX_TEMPORAL_SCHEDULES,
      );
      for (const [id, { paused }] of expected) {
        const found = existing.get(id);
        if (found ? found.paused !== paused : listsAll) suspects.add(id);
      }
      if (knowsAll) for (const id of existing.keys()) if (!expected.has(id)) suspects.add(id);
      const pending = await withPendingTask(db, [...suspects].map(temporalScheduleId));
      return mapConcurrently(
        log,
        signal,
        'comparing a schedule with Temporal',
        [...suspects].filter((id) => !pending.has(temporalScheduleId(id))),
        repair,
      );
    },
  };
}
