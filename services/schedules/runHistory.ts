import type { Knex } from '../../db/core/knex.ts';
import { idTimeSql } from '../../db/core/listConditions.ts';
import type { Sql } from '../../db/core/sql.ts';
import { readList } from '../../db/core/lists.ts';
import { ScheduleRun } from '../../db/models/ScheduleRun.ts';
import { whereInScope } from '../../db/core/scopeSql.ts';
import { countRuns, type RunCount } from '../../db/schedules/runDays.ts';
import { withJobs } from '../../db/schedules/runs.ts';
import { assertDefined } from '../../domain/shared/assert.ts';
import type { Permission } from '../../domain/access/permissions.ts';
import type { Caller } from '../../domain/shared/caller.ts';
import { notFound } from '../../domain/shared/errors.ts';
import type {
  ScheduleData,
  ScheduleRunData,
  ScheduleRunWithJob,
} from '../../domain/schedules/records.ts';
import { canonicalTimeZone, lastDays, type ZoneDay } from '../../domain/schedules/timeZone.ts';
import {
  withItems,
  type ListAnswer,
  type ListCondition,
  type ListRequest,
} from '../../domain/shared/lists.ts';
import type { Access } from '../access/access.ts';

export type RunHistory = ReturnType<typeof createRunHistory>;

/** The runs of a schedule on a day of its time zone, by how they ended. */
export type RunDay = ZoneDay & { end: Date; runs: Omit<RunCount, 'interval'>[] };

/** The id of a run starts with its scheduled time. */
const scheduledTimeSql = (condition: ListCondition): Sql | undefined =>
  condition.field === 'dueAt' ? idTimeSql('run', condition) : undefined;

/** The log of schedules: the outcome of each occurrence, trigger and backfill. */
export const createRunHistory = ({ db, access }: { db: Knex; access: Access }) => {
  const visible = (caller: Caller, ...others: readonly Permission[]) => {
    const query = ScheduleRun.query(db);
    whereInScope(query, access.scope(caller, 'schedule:read', ...others));
    return query;
  };

  /** A run that the caller may see, with the state of its job. */
  const withJob = async (run: ScheduleRunData): Promise<ScheduleRunWithJob> =>
    assertDefined((await withJobs(db, [run]))[0], 'run with job');

  return {
    /** With `actedWith`, also a run that this permission has started. Error: `not_found`. */
    async read(
      caller: Caller,
      id: string,
      actedWith: Permission = 'schedule:read',
    ): Promise<ScheduleRunWithJob> {
      const run = await visible(caller, actedWith).findById(id);
      if (!run) throw notFound('schedule run', id);
      return withJob(run);
    },

    withJob,

    /** Runs inside the caller's scope, also of deleted schedules, latest scheduled time first. */
    async list(caller: Caller, request: ListRequest): Promise<ListAnswer<ScheduleRunWithJob>> {
      const answer = await readList(
        { db, visible: () => visible(caller), condition: scheduledTimeSql },
        request,
      );
      return withItems(answer, await withJobs(db, answer.items));
    },

    /**
     * How the runs of a schedule ended on each of the last `count` days of its time zone (of UTC if it is
     * not known), the first day first. Days that have more runs than are counted are left out; null if counting takes too
     * long.
     */
    async days(
      { id, timezone }: Pick<ScheduleData, 'id' | 'timezone'>,
      count: number,
    ): Promise<{ timezone: string; days: RunDay[] | null }> {
      const zone = canonicalTimeZone(timezone) ?? 'UTC';
      const days = lastDays(zone, new Date(), count);
      const bounds = days.map(({ start }) => start);
      const counted = await countRuns(db, id, bounds);
      if (!counted) return { timezone: zone, days: null };
      const { counts, countedAfter } = counted;
      const shown = days.flatMap(({ date, start }, day): RunDay[] => {
        const end = bounds[day + 1];
        if (!end || (countedAfter && start <= countedAfter)) return [];
        const own = counts.filter(({ interval }) => interval === day);
        return [{ date, start, end, runs: own.map(({ interval, ...run }) => run) }];
      });
      return { timezone: zone, days: shown };
    },
  };
};
