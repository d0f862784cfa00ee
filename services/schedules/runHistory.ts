import {
  keysetPage,
  whereDefined,
  type KeysetPage,
  type PageRequest,
} from '../../db/core/keyset.ts';
import type { Knex } from '../../db/core/knex.ts';
import { ScheduleRun } from '../../db/models/ScheduleRun.ts';
import { whereInScope } from '../../db/core/scopeSql.ts';
import { withJobs } from '../../db/schedules/runs.ts';
import { assertDefined } from '../../domain/shared/assert.ts';
import type { Permission } from '../../domain/access/permissions.ts';
import type { Caller } from '../../domain/shared/caller.ts';
import { notFound } from '../../domain/shared/errors.ts';
import type { ScheduleRunData, ScheduleRunWithJob } from '../../domain/schedules/records.ts';
import type { RunKind, RunOutcome, RunReason } from '../../domain/schedules/schedules.ts';
import { minIdAt } from '../../platform/ids.ts';
import type { Access } from '../access/access.ts';

export type RunHistory = ReturnType<typeof createRunHistory>;

export type RunFilter = {
  scheduleId?: string;
  tenantId?: string;
  kind?: RunKind;
  outcome?: readonly RunOutcome[];
  reason?: RunReason;
  /** The earliest scheduled time, inclusive. */
  since?: Date;
  /** The end of the scheduled times, exclusive. */
  until?: Date;
};

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
    async list(
      caller: Caller,
      { scheduleId, tenantId, kind, outcome, reason, since, until }: RunFilter,
      page: PageRequest,
    ): Promise<KeysetPage<ScheduleRunWithJob>> {
      const query = visible(caller);
      whereDefined(query, { schedule_id: scheduleId, tenant_id: tenantId, kind, reason });
      if (outcome) void query.whereIn('outcome', [...outcome]);
      // The id of a run starts with its scheduled time.
      if (since) void query.where('id', '>=', minIdAt('run', since));
      if (until) void query.where('id', '<', minIdAt('run', until));
      const { items, nextKey } = await keysetPage(query, page);
      return { items: await withJobs(db, items), nextKey };
    },
  };
};
