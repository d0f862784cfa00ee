import type { ScheduleRunData } from './records.ts';

/**
 * What a backfill does with an occurrence: it runs those `toRun`, and leaves out those that have run
 * or wait to run, those that catch-up can still run, those whose runs are purged, and those where
 * a legal hold keeps the run of an earlier backfill, which it would replace.
 */
export type BackfillState = 'toRun' | 'hasRun' | 'pending' | 'purged' | 'held';

type Known = {
  /** The first occurrence of the schedule that has no run yet. */
  nextDueAt: Date | null;
  scheduled: Pick<ScheduleRunData, 'outcome'> | undefined;
  /** The run of an earlier backfill; `held`: a legal hold keeps it. */
  backfilled: (Pick<ScheduleRunData, 'outcome'> & { held: boolean }) | undefined;
  /** See `readPurgedUntil`. */
  purgedUntil: Date | null;
};

/** True for an occurrence that was run or skipped. */
export const isDecided = ({ nextDueAt }: Pick<Known, 'nextDueAt'>, dueAt: Date): boolean =>
  nextDueAt === null || dueAt < nextDueAt;

/** True for a run that has created a job or waits to do so. */
const hasRun = (run: Pick<ScheduleRunData, 'outcome'> | undefined): boolean =>
  run?.outcome === 'fired' || run?.outcome === 'buffered';

export function backfillState(dueAt: Date, known: Known): BackfillState {
  const { scheduled, backfilled, purgedUntil } = known;
  if (hasRun(scheduled) || hasRun(backfilled)) return 'hasRun';
  if (!scheduled && !isDecided(known, dueAt)) return 'pending';
  // The run that an earlier backfill has left says that nothing has run, whatever was purged.
  if (backfilled) return backfilled.held ? 'held' : 'toRun';
  return purgedUntil !== null && dueAt <= purgedUntil ? 'purged' : 'toRun';
}
