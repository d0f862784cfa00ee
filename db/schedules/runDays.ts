import type { Knex } from '../core/knex.ts';
import { readInTime } from '../core/lists.ts';
import { minIdAt } from '../../platform/ids.ts';
import type { JobStatus } from '../../domain/jobs/jobs.ts';
import type { RunOutcome, RunReason } from '../../domain/schedules/schedules.ts';

/** Runs of one interval that ended the same way. */
export type RunCount = {
  /** The position of the interval: 0 is the first. */
  interval: number;
  outcome: RunOutcome;
  reason: RunReason | null;
  /** The status of the jobs now; null without a job, and if it is purged. */
  jobStatus: JobStatus | null;
  count: number;
};

/** The newest runs of a schedule that are counted. */
const MAX_COUNTED_RUNS = 50_000;

export type RunCounts = {
  counts: RunCount[];
  /** Runs at this time and before may not be counted; null if all are. */
  countedAfter: Date | null;
};

/**
 * Counts the runs of a schedule between each two of `bounds`, which ascend. The id of a run starts with
 * its scheduled time, so that one range of an index is read. Null if it takes too long.
 */
export const countRuns = (
  db: Knex,
  scheduleId: string,
  bounds: readonly Date[],
  limit: number = MAX_COUNTED_RUNS,
): Promise<RunCounts | null> =>
  readInTime(db, async (trx) => {
    const [first, last] = [bounds.at(0), bounds.at(-1)];
    if (!first || !last) return { counts: [], countedAfter: null };
    const { rows } = await trx.raw<{
      rows: (RunCount & { total: number; earliest: Date })[];
    }>(
      `WITH run AS (
         SELECT due_at, outcome, reason, job_id FROM schedule_runs
         WHERE schedule_id = ? AND id >= ? AND id < ? ORDER BY id DESC LIMIT ?
       )
       SELECT width_bucket(due_at, ?::timestamptz[]) - 1 AS interval, outcome, reason,
         jobs.status AS "jobStatus", count(*)::int AS count,
         sum(count(*)) OVER ()::int AS total, min(min(due_at)) OVER () AS earliest
       FROM run LEFT JOIN jobs ON jobs.id = job_id GROUP BY 1, 2, 3, 4 ORDER BY 1, 2, 3, 4`,
      [
        scheduleId,
        minIdAt('run', first),
        minIdAt('run', last),
        limit,
        bounds.map((bound) => bound.toISOString()),
      ],
    );
    const isCut = (rows[0]?.total ?? 0) >= limit;
    return {
      counts: rows.map(({ total, earliest, ...count }) => count),
      countedAfter: isCut ? (rows[0]?.earliest ?? null) : null,
    };
  });
