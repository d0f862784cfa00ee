import { keysetPage, whereGiven, type Page, type PageRequest } from '../db/core/keyset.ts';
import type { Knex } from '../db/core/knex.ts';
import { ScheduleRun } from '../db/models/ScheduleRun.ts';
import { whereInScope } from '../db/core/scopeSql.ts';
import type { Caller } from '../domain/shared/caller.ts';
import { notFound } from '../domain/shared/errors.ts';
import type { RunKind, RunOutcome, RunReason } from '../domain/schedules/schedules.ts';
import { firstIdAt } from '../platform/ids.ts';
import type { Access } from './access.ts';

export type ScheduleLog = ReturnType<typeof createScheduleLog>;

export type RunFilter = {
  scheduleId?: string;
  tenantId?: string;
  kind?: RunKind;
  outcome?: readonly RunOutcome[];
  reason?: RunReason;
  /** Times due from here on, and before there. */
  since?: Date;
  until?: Date;
};

/** The proof of what became of every time due. */
export const createScheduleLog = ({ db, access }: { db: Knex; access: Access }) => {
  const visible = (caller: Caller) => {
    const query = ScheduleRun.query(db);
    whereInScope(query, access.scope(caller, 'schedule:read'));
    return query;
  };

  return {
    /** One run. Error: `not_found`. */
    async read(caller: Caller, id: string): Promise<ScheduleRun> {
      const run = await visible(caller).findById(id);
      if (!run) throw notFound('run of a schedule', id);
      return run;
    },

    /** Runs inside the caller's scope, of deleted schedules too, latest time due first. */
    list(
      caller: Caller,
      { scheduleId, tenantId, kind, outcome, reason, since, until }: RunFilter,
      page: PageRequest,
    ): Promise<Page<ScheduleRun>> {
      const query = visible(caller);
      whereGiven(query, { schedule_id: scheduleId, tenant_id: tenantId, kind, reason });
      if (outcome) void query.whereIn('outcome', [...outcome]);
      // The id of a run begins with its time due.
      if (since) void query.where('id', '>=', firstIdAt('run', since));
      if (until) void query.where('id', '<', firstIdAt('run', until));
      return keysetPage(query, page);
    },
  };
};
