import { readDatabaseTime } from '../../db/core/databaseTime.ts';
import { Schedule } from '../../db/models/Schedule.ts';
import { ScheduleRun } from '../../db/models/ScheduleRun.ts';
import { syncSchedule } from '../../domain/dispatch/tasks.ts';
import { isCaughtUp, nextKnownOf, type RunKind } from '../../domain/schedules/schedules.ts';
import { minIdAt, type Ids } from '../../platform/ids.ts';
import { skipPending } from './missedRuns.ts';
import type { DecisionContext, RunDecision, RunDecisions } from './runDecision.ts';
import { recordIfEnded, recordRun } from './scheduleAudit.ts';

/** What a run is for: its scheduled time and who requested it. */
type RunTrigger = { kind: RunKind; dueAt: Date; actorId: string };

/** Records decided runs and advances their schedule. */
export function createRunRecorder({ ids, runDecisions }: { ids: Ids; runDecisions: RunDecisions }) {
  /** Inserts a decided run with its audit entry and event. */
  function insertRun(
    { work, schedule }: DecisionContext,
    decision: RunDecision,
    { kind, dueAt, actorId }: RunTrigger,
  ): ScheduleRun {
    const { now } = work;
    const jobId = decision.outcome === 'fired' ? decision.job.id : null;
    const isLate = isCaughtUp(schedule, dueAt, now);
    const run = work.insert(ScheduleRun, {
      id: ids.at('run', dueAt),
      scheduleId: schedule.id,
      tenantId: schedule.tenantId,
      kind,
      dueAt,
      outcome: decision.outcome,
      reason: 'reason' in decision ? decision.reason : null,
      caughtUp: kind === 'scheduled' && jobId !== null && isLate,
      jobId,
      actorId,
      decidedAt: now,
    });
    recordRun(work, schedule, run);
    return run;
  }

  /**
   * Updates run count, next occurrence and last run of the schedule. A schedule that ends skips its
   * other pending occurrences and loses its Temporal Schedule.
   */
  async function advanceSchedule(context: DecisionContext, run: ScheduleRun): Promise<void> {
    const { work, trx, schedule } = context;
    const isScheduled = run.kind === 'scheduled';
    const runCount = schedule.runCount + (isScheduled && run.outcome === 'fired' ? 1 : 0);
    const nextDueAt = nextAfter(schedule, run, runCount);
    if (schedule.nextDueAt && !nextDueAt) {
      await skipPending(work, trx, ids, schedule, {
        reason: 'ended',
        now: await readDatabaseTime(trx),
        nextDueAt: null,
        isExcluded: (dueAt) => dueAt.getTime() === run.dueAt.getTime(),
      });
      // A run that was buffered is still so in the database while it is decided.
      if (run.outcome !== 'buffered')
        await runDecisions.skipBuffered(work, trx, schedule, 'ended', {
          kinds: ['scheduled'],
          except: run.id,
        });
      recordIfEnded(work, schedule, { from: schedule.nextDueAt, to: nextDueAt });
      work.dispatch(syncSchedule(schedule));
    }
    const { lastRunId } = schedule;
    // If runs have the same scheduled time, such as a missed one and its backfill, the last decided
    // one counts. Ids start with the scheduled time.
    const isLatest =
      lastRunId === null || lastRunId < minIdAt('run', new Date(run.dueAt.getTime() + 1));
    await Schedule.query(trx)
      .findById(schedule.id)
      .patch({ runCount, nextDueAt, lastRunId: isLatest ? run.id : lastRunId });
  }

  return {
    advanceSchedule,

    /** Inserts a decided run and advances its schedule. */
    async record(
      context: DecisionContext,
      decision: RunDecision,
      trigger: RunTrigger,
    ): Promise<ScheduleRun> {
      const run = insertRun(context, decision, trigger);
      await advanceSchedule(context, run);
      return run;
    },
  };
}

/** The next pending occurrence after a run: unchanged unless the run was for that occurrence. */
function nextAfter(schedule: Schedule, run: ScheduleRun, runCount: number): Date | null {
  const { nextDueAt } = schedule;
  if (nextDueAt === null) return null;
  const isNext = run.kind === 'scheduled' && nextDueAt.getTime() === run.dueAt.getTime();
  // The search is exclusive: one millisecond earlier, it finds the pending occurrence itself.
  const after = isNext ? nextDueAt : new Date(nextDueAt.getTime() - 1);
  return nextKnownOf(schedule, after, runCount);
}
