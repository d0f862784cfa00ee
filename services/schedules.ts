import type { Commit, Work } from '../db/commit.ts';
import { keysetPage, whereGiven, type Page, type PageRequest } from '../db/keyset.ts';
import type { Knex } from '../db/knex.ts';
import { Schedule } from '../db/models/Schedule.ts';
import { ScheduleRun } from '../db/models/ScheduleRun.ts';
import { lockSchedule } from '../db/schedules.ts';
import { whereInScope } from '../db/scopeSql.ts';
import type { Caller } from '../domain/caller.ts';
import { checkVersion, invalidField, notFound } from '../domain/errors.ts';
import { permissionsFor } from '../domain/jobType.ts';
import type { Permission } from '../domain/permissions.ts';
import { BACKUP_JOB, DEFAULT_CATCHUP_SECONDS, nextDueOf } from '../domain/schedules.ts';
import type { Ids } from '../platform/ids.ts';
import { mirrorSchedule, type DispatchTask } from '../temporal/contracts.ts';
import type { Access } from './access.ts';
import type { JobTypes } from './jobTypes/registry.ts';
import { authorityOf } from './rights.ts';
import { closeTimes } from './scheduleAccounts.ts';
import { checkComes, checkJob, checkTiming, requireJobType, samePayload, type ScheduleFields } from './scheduleFields.ts';
import { scheduleEvent, scheduleSubject, scheduleView } from './scheduleTrail.ts';

export type Schedules = ReturnType<typeof createSchedules>;

export type ScheduleFilter = { enabled?: boolean; jobType?: string; tenantId?: string };

/** `takeOver`: from now on its jobs act for the caller. */
export type ScheduleChange = Partial<ScheduleFields> & { takeOver?: boolean };

export type BackupSchedule = { name: string; cronExpression: string; timezone?: string; mode: string; label?: string };

/** A schedule with the last of its runs by their time. */
export type ScheduleWithRun = { schedule: Schedule; lastRun: ScheduleRun | null };

type Deps = { db: Knex; commit: Commit<DispatchTask>; access: Access; ids: Ids; jobTypes: JobTypes };

/** When jobs are to be made, again and again. */
export function createSchedules({ db, commit, access, ids, jobTypes }: Deps) {
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

  async function withRuns(schedules: readonly Schedule[]): Promise<ScheduleWithRun[]> {
    const runs = await ScheduleRun.query(db).findByIds(schedules.flatMap(({ lastRunId }) => lastRunId ?? []));
    const byId = new Map(runs.map((run) => [run.id, run]));
    return schedules.map((schedule) => ({ schedule, lastRun: byId.get(schedule.lastRunId ?? '') ?? null }));
  }

  const withRun = async (schedule: Schedule): Promise<ScheduleWithRun> => (await withRuns([schedule]))[0] ?? { schedule, lastRun: null };

  /** What a schedule makes is made with its owner's rights: nobody becomes one of jobs that they may not make. */
  async function requireJobs(caller: Caller, type: string, payload: Record<string, unknown>): Promise<void> {
    for (const permission of permissionsFor(checkJob(jobTypes, type, payload))) await access.require(caller, permission, caller);
  }

  /** Runs a change of a schedule that is there, with its row locked, in its tenant's trail. */
  const changing = <T>(
    caller: Caller, { id, tenantId }: Schedule, expectedVersion: number | undefined,
    change: (work: Work<DispatchTask>, before: Schedule, trx: Knex) => Promise<T>,
  ): Promise<T> =>
    commit({ ...caller, tenantId }, async (work) => {
      const trx = await work.trx();
      const before = await lockSchedule(trx, id);
      if (!before) throw notFound('schedule', id);
      checkVersion(before, expectedVersion);
      return change(work, before, trx);
    });

  /** Writes a changed schedule; what was due until now is accounted for when its times change. */
  async function write(work: Work<DispatchTask>, trx: Knex, before: Schedule, changed: Partial<Schedule>, action: string): Promise<Schedule> {
    const after = Object.assign(new Schedule(), before, changed);
    if (TIMES.some((field) => before[field]?.valueOf() !== after[field]?.valueOf())) {
      after.nextDueAt = nextDueOf(after, work.now);
      await closeTimes(work, trx, ids, before, { reason: after.enabled ? 'changed' : 'disabled', next: after.nextDueAt });
    }
    if (!after.enabled) await dropBuffered(trx, before.id, 'disabled', work.now);
    const { nextDueAt } = after;
    const saved = await Schedule.query(trx).patchAndFetchById(before.id, { ...changed, nextDueAt, updatedAt: work.now, version: before.version + 1 });
    work.audit(action, scheduleSubject(saved), { before: scheduleView(before), after: { ...scheduleView(saved), payloadChanged: changed.payload !== undefined } });
    work.emit('schedule.updated', scheduleSubject(saved), scheduleEvent(saved));
    work.dispatch(mirrorSchedule(saved.id));
    return saved;
  }

  async function create(caller: Caller, fields: ScheduleFields): Promise<ScheduleWithRun> {
    await access.require(caller, 'schedule:write', caller);
    const { startAt = null, endAt = null, payload = {}, enabled = true } = fields;
    const timing = checkTiming({ cronExpression: fields.cronExpression, timezone: fields.timezone ?? 'UTC', startAt, endAt });
    await requireJobs(caller, fields.jobType, payload);
    return commit(caller, (work) => {
      const { now } = work;
      checkComes(timing, now);
      const times = { cronExpression: fields.cronExpression.trim(), timezone: timing.timezone, startAt, endAt, maxRuns: fields.maxRuns ?? null, runCount: 0 };
      const schedule = work.insert(Schedule, {
        id: ids.next('sch'), tenantId: caller.tenantId, name: fields.name, description: fields.description ?? '', ...times,
        jobType: fields.jobType, payload, retryPolicy: fields.retryPolicy ?? {}, overlapPolicy: fields.overlapPolicy ?? 'skip',
        catchupWindowSeconds: fields.catchupWindowSeconds ?? DEFAULT_CATCHUP_SECONDS, jitterSeconds: fields.jitterSeconds ?? 0,
        enabled, ...(enabled ? RESUMED : { pausedAt: now, pausedBy: caller.actorId, pauseReason: null }), owner: authorityOf(caller),
        nextDueAt: nextDueOf(times, now), lastRunId: null, checkedAt: now, createdBy: caller.actorId, createdAt: now, updatedAt: now, deletedAt: null, version: 1,
      });
      work.audit('schedule.create', scheduleSubject(schedule), { after: scheduleView(schedule) });
      work.emit('schedule.created', scheduleSubject(schedule), scheduleEvent(schedule));
      work.dispatch(mirrorSchedule(schedule.id));
      return { schedule, lastRun: null };
    });
  }

  /** Pauses or resumes. */
  async function enable(caller: Caller, id: string, enabled: boolean, reason: string | undefined, expectedVersion?: number): Promise<ScheduleWithRun> {
    const known = await findToAct(caller, id, 'schedule:write');
    return withRun(await changing(caller, known, expectedVersion, (work, before, trx) =>
      write(work, trx, before, enabling(enabled, caller, reason, work.now), enabled ? 'schedule.resume' : 'schedule.pause')));
  }

  return {
    /** Errors: `not_found`, `permission_denied`. */
    findToAct,

    /** Error: `not_found`. */
    read: async (caller: Caller, id: string): Promise<ScheduleWithRun> => withRun(await find(caller, id)),

    /** Schedules inside the caller's scope, newest first. */
    async list(caller: Caller, { enabled, jobType, tenantId }: ScheduleFilter, page: PageRequest): Promise<Page<ScheduleWithRun>> {
      const query = visible(caller);
      whereGiven(query, { enabled, job_type: jobType, tenant_id: tenantId });
      const { items, nextKey } = await keysetPage(query, page);
      return { items: await withRuns(items), nextKey };
    },

    /**
     * Makes a schedule at the caller's tenant; the caller owns it. Errors: `permission_denied` (`schedule:write`, and
     * what such jobs need), `invalid_request` (times, job type, payload).
     */
    create,

    /** The same for backups. Errors also: `not_supported` while there is no job type for them. */
    async createBackup(caller: Caller, { name, cronExpression, timezone, mode, label }: BackupSchedule): Promise<ScheduleWithRun> {
      await access.require(caller, 'schedule:write', caller);
      requireJobType(jobTypes, BACKUP_JOB, 'Backups');
      const payload = { mode, ...(label !== undefined && { label }) };
      return create(caller, { name, cronExpression, jobType: BACKUP_JOB, payload, ...(timezone !== undefined && { timezone }) });
    },

    /**
     * Changes what is given. Whoever changes what its jobs do owns it from then on. Errors: `not_found`, `permission_denied`,
     * `invalid_request`, `version_stale`.
     */
    async update(caller: Caller, id: string, fields: ScheduleChange, expectedVersion?: number): Promise<ScheduleWithRun> {
      const known = await findToAct(caller, id, 'schedule:write');
      const { takeOver = false, enabled, payload: givenPayload, jobType, ...given } = fields;
      const otherJob = jobType !== undefined && jobType !== known.jobType;
      // Kept for another type, the secrets of a payload could be read in what that does with them.
      if (otherJob && !givenPayload) throw invalidField('body', '/payload', 'required', 'must be given together with another jobType');
      const payload = givenPayload && (otherJob || !samePayload(jobTypes, known, givenPayload)) ? givenPayload : undefined;
      const owned = takeOver || payload !== undefined || otherJob || given.retryPolicy !== undefined;
      const at = { ...caller, tenantId: known.tenantId };
      if (owned) await requireJobs(at, jobType ?? known.jobType, payload ?? known.payload);
      return withRun(await changing(caller, known, expectedVersion, (work, before, trx) => {
        const timing = checkTiming(Object.assign(new Schedule(), before, given));
        if (given.endAt !== undefined || given.cronExpression !== undefined) checkComes(timing, work.now);
        return write(work, trx, before, {
          ...given, ...(given.cronExpression !== undefined && { cronExpression: given.cronExpression.trim() }), timezone: timing.timezone,
          // What was not checked is not written: another may have changed the type meanwhile.
          ...(otherJob && { jobType }), ...(payload && { payload }), ...(owned && { owner: authorityOf(caller) }),
          ...(enabled !== undefined && enabled !== before.enabled && enabling(enabled, caller, undefined, work.now)),
        }, 'schedule.update');
      }));
    },

    /** Errors: `not_found`, `permission_denied`, `version_stale`. */
    pause: (caller: Caller, id: string, reason: string | undefined, expectedVersion?: number) => enable(caller, id, false, reason, expectedVersion),

    /** The same, from now on again. */
    resume: (caller: Caller, id: string, reason: string | undefined, expectedVersion?: number) => enable(caller, id, true, reason, expectedVersion),

    /** Stops future runs; jobs and runs stay. Errors: `not_found`, `permission_denied`, `version_stale`. */
    async remove(caller: Caller, id: string, expectedVersion?: number): Promise<void> {
      const known = await findToAct(caller, id, 'schedule:write');
      await changing(caller, known, expectedVersion, async (work, before, trx) => {
        await closeTimes(work, trx, ids, before, { reason: 'deleted', next: null });
        await dropBuffered(trx, id, 'deleted', work.now);
        await Schedule.query(trx).findById(id).patch({ nextDueAt: null, deletedAt: work.now, updatedAt: work.now, version: before.version + 1 });
        work.audit('schedule.delete', scheduleSubject(before), { before: scheduleView(before) });
        work.emit('schedule.deleted', scheduleSubject(before), scheduleEvent(before));
        work.dispatch(mirrorSchedule(id));
      });
    },
  };
}

/** Fields whose change changes what is due. */
const TIMES = ['cronExpression', 'timezone', 'startAt', 'endAt', 'maxRuns', 'enabled'] as const;

const RESUMED = { pausedAt: null, pausedBy: null, pauseReason: null };

const enabling = (enabled: boolean, { actorId }: Caller, reason: string | undefined, now: Date): Partial<Schedule> =>
  enabled ? { enabled, ...RESUMED } : { enabled, pausedAt: now, pausedBy: actorId, pauseReason: reason ?? null };

/** A run that waits for a job to end waits no longer. */
const dropBuffered = async (trx: Knex, scheduleId: string, reason: 'disabled' | 'deleted', now: Date): Promise<void> =>
  void (await ScheduleRun.query(trx).where({ schedule_id: scheduleId, outcome: 'buffered' }).patch({ outcome: 'skipped', reason, decidedAt: now }));
