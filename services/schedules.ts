import { isDeepStrictEqual } from 'node:util';
import type { Commit, Work } from '../db/commit.ts';
import { keysetPage, whereGiven, type Page, type PageRequest } from '../db/core/keyset.ts';
import type { Knex } from '../db/core/knex.ts';
import { Schedule } from '../db/models/Schedule.ts';
import { ScheduleRun } from '../db/models/ScheduleRun.ts';
import { lockSchedule, SCHEDULE_SUMMARY_COLUMNS } from '../db/schedules/schedules.ts';
import { whereInScope } from '../db/core/scopeSql.ts';
import { BACKUP_CATCHUP_SECONDS, BACKUP_JOB, VERIFY_JOB } from '../domain/backups.ts';
import type { Caller } from '../domain/shared/caller.ts';
import {
  checkVersion,
  invalidField,
  invalidFields,
  notFound,
  staleVersion,
} from '../domain/shared/errors.ts';
import { permissionsFor } from '../domain/jobType.ts';
import type { Permission } from '../domain/access/permissions.ts';
import { DEFAULT_CATCHUP_SECONDS, nextDueOf, type OverlapPolicy } from '../domain/schedules/schedules.ts';
import type { Ids } from '../platform/ids.ts';
import { mirrorSchedule, type DispatchTask } from '../temporal/contracts.ts';
import type { Access } from './access.ts';
import type { BackupRequest } from './backups/backups.ts';
import type { JobTypes } from './jobTypes/registry.ts';
import { authorityOf } from './access/rights.ts';
import { closeTimes } from './scheduleAccounts.ts';
import {
  checkComes,
  checkJob,
  checkTiming,
  samePayload,
  type ScheduleFields,
} from './schedules/fields.ts';
import { scheduleEvent, scheduleSubject, scheduleView } from './scheduleTrail.ts';
import type { ScheduleVerdicts } from './scheduleVerdicts.ts';
import { createScheduleWrite } from './scheduleWrite.ts';

export type Schedules = ReturnType<typeof createSchedules>;

export type ScheduleFilter = { enabled?: boolean; jobType?: string; tenantId?: string };

/** `takeOver`: from now on its jobs act for the caller. */
export type ScheduleChange = Partial<ScheduleFields> & { takeOver?: boolean };

export type BackupSchedule = {
  name: string;
  cronExpression: string;
  timezone?: string;
  jobType?: typeof BACKUP_JOB | typeof VERIFY_JOB;
} & BackupRequest;

/** A schedule with the last of its runs by their time. */
export type ScheduleWithRun = { schedule: Schedule; lastRun: ScheduleRun | null };

type Deps = {
  db: Knex;
  commit: Commit<DispatchTask>;
  access: Access;
  ids: Ids;
  jobTypes: JobTypes;
  verdicts: ScheduleVerdicts;
};

/** When jobs are to be made, again and again. */
export function createSchedules({ db, commit, access, ids, jobTypes, verdicts }: Deps) {
  const visible = (caller: Caller) => {
    const query = Schedule.query(db).whereNull('deleted_at');
    whereInScope(query, access.scope(caller, 'schedule:read'));
    return query;
  };

  async function find(caller: Caller, id: string): Promise<Schedule> {
    const schedule = await visible(caller).findById(id);
    if (!schedule) throw notFound('schedule', id);
    return schedule;
  }

  /** A schedule that the caller sees, to be acted on with another permission held where it stands. */
  async function findToAct(caller: Caller, id: string, permission: Permission): Promise<Schedule> {
    const schedule = await find(caller, id);
    await access.require(caller, permission, schedule);
    return schedule;
  }

  const write = createScheduleWrite({ ids, verdicts });

  async function withRuns(schedules: readonly Schedule[]): Promise<ScheduleWithRun[]> {
    const runs = await ScheduleRun.query(db).findByIds(
      schedules.flatMap(({ lastRunId }) => lastRunId ?? []),
    );
    const byId = new Map(runs.map((run) => [run.id, run]));
    return schedules.map((schedule) => ({
      schedule,
      lastRun: byId.get(schedule.lastRunId ?? '') ?? null,
    }));
  }

  const withRun = async (schedule: Schedule): Promise<ScheduleWithRun> =>
    (await withRuns([schedule]))[0] ?? { schedule, lastRun: null };

  /** Who makes a schedule cancel jobs, or runs one that does, may cancel jobs. */
  async function requireCancel(
    caller: Caller,
    { overlapPolicy, tenantId }: { overlapPolicy: OverlapPolicy | undefined; tenantId: string },
  ): Promise<void> {
    if (overlapPolicy === 'cancelOther') await access.require(caller, 'job:cancel', { tenantId });
  }

  /** What a schedule makes is made with its owner's rights: nobody becomes one of jobs that they may not make. */
  async function requireJobs(
    caller: Caller,
    type: string,
    payload: Record<string, unknown>,
  ): Promise<void> {
    for (const permission of permissionsFor(checkJob(jobTypes, type, payload)))
      await access.require(caller, permission, caller);
  }

  /** Runs a change of a schedule that is there, with its row locked, in its tenant's trail. */
  const changing = <T>(
    caller: Caller,
    { id, tenantId }: Schedule,
    expectedVersion: number | undefined,
    change: (work: Work<DispatchTask>, before: Schedule, trx: Knex) => Promise<T>,
  ): Promise<T> =>
    commit({ ...caller, tenantId }, async (work) => {
      const trx = await work.trx();
      const before = await lockSchedule(trx, id);
      if (!before) throw notFound('schedule', id);
      checkVersion(before, expectedVersion);
      return change(work, before, trx);
    });

  async function create(caller: Caller, fields: ScheduleFields): Promise<ScheduleWithRun> {
    await access.require(caller, 'schedule:write', caller);
    const { startAt = null, endAt = null, payload = {}, enabled = true } = fields;
    const timing = checkTiming({
      cronExpression: fields.cronExpression,
      timezone: fields.timezone ?? 'UTC',
      startAt,
      endAt,
    });
    await requireJobs(caller, fields.jobType, payload);
    await requireCancel(caller, { overlapPolicy: fields.overlapPolicy, tenantId: caller.tenantId });
    return commit(caller, (work) => {
      const { now } = work;
      checkComes(timing, now);
      const times = {
        cronExpression: fields.cronExpression.trim(),
        timezone: timing.timezone,
        startAt,
        endAt,
        maxRuns: fields.maxRuns ?? null,
        runCount: 0,
      };
      const schedule = work.insert(Schedule, {
        id: ids.next('sch'),
        tenantId: caller.tenantId,
        name: fields.name,
        description: fields.description ?? '',
        ...times,
        jobType: fields.jobType,
        payload,
        retryPolicy: fields.retryPolicy ?? {},
        overlapPolicy: fields.overlapPolicy ?? 'skip',
        catchupWindowSeconds: fields.catchupWindowSeconds ?? DEFAULT_CATCHUP_SECONDS,
        jitterSeconds: fields.jitterSeconds ?? 0,
        ...enabling(enabled, caller, undefined, now),
        owner: authorityOf(caller),
        nextDueAt: nextDueOf(times, now),
        lastRunId: null,
        checkedAt: now,
        createdBy: caller.actorId,
        createdAt: now,
        updatedAt: now,
        deletedAt: null,
        version: 1,
      });
      work.audit('schedule.create', scheduleSubject(schedule), { after: scheduleView(schedule) });
      work.emit('schedule.created', scheduleSubject(schedule), scheduleEvent(schedule));
      work.dispatch(mirrorSchedule(schedule.id));
      return { schedule, lastRun: null };
    });
  }

  /** Pauses or resumes. */
  async function enable(
    caller: Caller,
    id: string,
    enabled: boolean,
    reason: string | undefined,
    expectedVersion?: number,
  ): Promise<ScheduleWithRun> {
    const known = await findToAct(caller, id, 'schedule:write');
    return withRun(
      await changing(caller, known, expectedVersion, (work, before, trx) =>
        write(
          work,
          trx,
          before,
          enabling(enabled, caller, reason, work.now),
          enabled ? 'schedule.resume' : 'schedule.pause',
          { reason: reason ?? null },
        ),
      ),
    );
  }

  return {
    /** Errors: `not_found`, `permission_denied`. */
    findToAct,

    /** Error: `permission_denied`. */
    requireCancel,

    /** Error: `not_found`. */
    read: async (caller: Caller, id: string): Promise<ScheduleWithRun> =>
      withRun(await find(caller, id)),

    /** Schedules inside the caller's scope, newest first, without their payloads. */
    async list(
      caller: Caller,
      { enabled, jobType, tenantId }: ScheduleFilter,
      page: PageRequest,
    ): Promise<Page<ScheduleWithRun>> {
      const query = visible(caller);
      whereGiven(query, { enabled, job_type: jobType, tenant_id: tenantId });
      const { items, nextKey } = await keysetPage(query.select(SCHEDULE_SUMMARY_COLUMNS), page);
      return { items: await withRuns(items), nextKey };
    },

    /**
     * Makes a schedule at the caller's tenant; the caller owns it. Errors: `permission_denied` (`schedule:write`, and
     * what such jobs need), `invalid_request` (times, job type, payload).
     */
    create,

    /** The same for backups. One that was missed while nothing ran is made up for within hours. */
    async createBackup(
      caller: Caller,
      { name, cronExpression, timezone, jobType = BACKUP_JOB, ...payload }: BackupSchedule,
    ): Promise<ScheduleWithRun> {
      await access.require(caller, 'schedule:write', caller);
      const extra =
        jobType === VERIFY_JOB ? Object.keys(payload).filter((field) => field !== 'label') : [];
      if (extra.length > 0)
        throw invalidFields(
          extra.map((field) => ({
            in: 'body' as const,
            pointer: `/${field}`,
            code: 'not_for_verify',
            message: 'belongs to schedules that make backups',
          })),
        );
      if (payload.mode === 'partial' && (payload.sections ?? []).length === 0)
        throw invalidField(
          'body',
          '/sections',
          'required',
          'must name at least one for the mode partial',
        );
      return create(caller, {
        name,
        cronExpression,
        jobType,
        payload,
        catchupWindowSeconds: BACKUP_CATCHUP_SECONDS,
        ...(timezone !== undefined && { timezone }),
      });
    },

    /**
     * Changes what is given. Whoever changes what its jobs do owns it from then on. Errors: `not_found`, `permission_denied`,
     * `invalid_request`, `version_stale`.
     */
    async update(
      caller: Caller,
      id: string,
      fields: ScheduleChange,
      expectedVersion?: number,
    ): Promise<ScheduleWithRun> {
      const known = await findToAct(caller, id, 'schedule:write');
      const { takeOver = false, enabled, payload: givenPayload, jobType, ...given } = fields;
      const otherJob = jobType !== undefined && jobType !== known.jobType;
      // Kept for another type, the secrets of a payload could be read in what that does with them.
      if (otherJob && !givenPayload)
        throw invalidField(
          'body',
          '/payload',
          'required',
          'must be given together with another jobType',
        );
      const payload =
        givenPayload && (otherJob || !samePayload(jobTypes, known, givenPayload))
          ? givenPayload
          : undefined;
      const owned =
        takeOver ||
        payload !== undefined ||
        otherJob ||
        (given.retryPolicy !== undefined &&
          !isDeepStrictEqual(given.retryPolicy, known.retryPolicy));
      const at = { ...caller, tenantId: known.tenantId };
      if (owned) await requireJobs(at, jobType ?? known.jobType, payload ?? known.payload);
      await requireCancel(caller, { overlapPolicy: given.overlapPolicy, tenantId: known.tenantId });
      return withRun(
        await changing(caller, known, expectedVersion, (work, before, trx) => {
          const timing = checkTiming(Object.assign(new Schedule(), before, given));
          // What was checked was the record as it was read.
          if (owned && before.version !== known.version) throw staleVersion(before.version);
          if (
            [given.startAt, given.endAt, given.cronExpression, given.timezone].some(
              (field) => field !== undefined,
            )
          )
            checkComes(timing, work.now);
          return write(
            work,
            trx,
            before,
            {
              ...given,
              ...(given.cronExpression !== undefined && {
                cronExpression: given.cronExpression.trim(),
              }),
              timezone: timing.timezone,
              ...(otherJob && { jobType }),
              ...(payload && { payload }),
              ...(owned && { owner: authorityOf(caller) }),
              ...(enabled !== undefined &&
                enabled !== before.enabled &&
                enabling(enabled, caller, undefined, work.now)),
            },
            'schedule.update',
          );
        }),
      );
    },

    /** Errors: `not_found`, `permission_denied`, `version_stale`. */
    pause: (caller: Caller, id: string, reason: string | undefined, expectedVersion?: number) =>
      enable(caller, id, false, reason, expectedVersion),

    /** The same, from now on again. */
    resume: (caller: Caller, id: string, reason: string | undefined, expectedVersion?: number) =>
      enable(caller, id, true, reason, expectedVersion),

    /** Stops future runs; jobs and runs stay. Errors: `not_found`, `permission_denied`, `version_stale`. */
    async remove(caller: Caller, id: string, expectedVersion?: number): Promise<void> {
      const known = await findToAct(caller, id, 'schedule:write');
      await changing(caller, known, expectedVersion, async (work, before, trx) => {
        await closeTimes(work, trx, ids, before, { reason: 'deleted', next: null });
        await verdicts.dropBuffered(work, trx, before, 'deleted');
        await Schedule.query(trx)
          .findById(id)
          .patch({
            nextDueAt: null,
            deletedAt: work.now,
            updatedAt: work.now,
            version: before.version + 1,
          });
        work.audit('schedule.delete', scheduleSubject(before), { before: scheduleView(before) });
        work.emit('schedule.deleted', scheduleSubject(before), scheduleEvent(before));
        work.dispatch(mirrorSchedule(id));
      });
    },
  };
}

const RESUMED = { pausedAt: null, pausedBy: null, pauseReason: null };

const enabling = (
  enabled: boolean,
  { actorId }: Caller,
  reason: string | undefined,
  now: Date,
): Partial<Schedule> =>
  enabled
    ? { enabled, ...RESUMED }
    : { enabled, pausedAt: now, pausedBy: actorId, pauseReason: reason ?? null };
