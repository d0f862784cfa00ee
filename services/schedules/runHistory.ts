import type { Knex } from '../../db/core/knex.ts';
import { idTimeSql } from '../../db/core/listConditions.ts';
import type { Sql } from '../../db/core/sql.ts';
import { readList } from '../../db/core/lists.ts';
import { ScheduleRun } from '../../db/models/ScheduleRun.ts';
import { whereInScope } from '../../db/core/scopeSql.ts';
import { withJobs } from '../../db/schedules/runs.ts';
import { assertDefined } from '../../domain/shared/assert.ts';
import type { Permission } from '../../domain/access/permissions.ts';
import type { Caller } from '../../domain/shared/caller.ts';
import { notFound } from '../../domain/shared/errors.ts';
import type { ScheduleRunData, ScheduleRunWithJob } from '../../domain/schedules/records.ts';
import {
  withItems,
  type ListAnswer,
  type ListCondition,
  type ListRequest,
} from '../../domain/shared/lists.ts';
import type { Access } from '../access/access.ts';

export type RunHistory = ReturnType<typeof createRunHistory>;

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
  };
};
