import { lockOwned } from '../../db/access/quotas.ts';
import type { Commit } from '../../db/core/commit.ts';
import { readDatabaseTime } from '../../db/core/databaseTime.ts';
import type { Knex } from '../../db/core/knex.ts';
import { scopedRepository } from '../../db/core/scopedRepository.ts';
import { Schedule } from '../../db/models/Schedule.ts';
import { ScheduleRun } from '../../db/models/ScheduleRun.ts';
import { withJobs } from '../../db/schedules/runs.ts';
import { SCHEDULE_SUMMARY_COLUMNS } from '../../db/schedules/schedules.ts';
import type { Permission } from '../../domain/access/permissions.ts';
import { BACKUP_CATCHUP_SECONDS, BACKUP_JOB, VERIFY_JOB } from '../../domain/backups/backups.ts';
import { syncSchedule } from '../../domain/dispatch/tasks.ts';
import type { Timing } from '../../domain/schedules/occurrences.ts';
import type { ScheduleData, ScheduleRunWithJob } from '../../domain/schedules/records.ts';
import {
  DEFAULT_CATCHUP_SECONDS,
  nextOccurrenceOf,
  spreadSecondsOf,
} from '../../domain/schedules/schedules.ts';
import { assertDefined } from '../../domain/shared/assert.ts';
import { writerKeyOf, type Caller } from '../../domain/shared/caller.ts';
import { invalidFields } from '../../domain/shared/errors.ts';
import { withItems, type ListAnswer, type ListRequest } from '../../domain/shared/lists.ts';
import type { Warning } from '../../domain/shared/warnings.ts';
import type { Ids } from '../../platform/ids.ts';
import type { Access } from '../access/access.ts';
import { authorityOf } from '../access/rights.ts';
import type { BackupOptions } from '../backups/backups.ts';
import { ignoreSectionsOfFull } from '../backups/selectSections.ts';
import type { JobReferences } from '../jobs/payloadReferences.ts';
import type { JobTargets } from '../jobs/targets.ts';
import type { JobTypes } from '../jobTypes/registry.ts';
import { assertNotHeld } from '../retention/assertNotHeld.ts';
import { assertOccurs, checkTiming, requireTiming, type ScheduleFields } from './fields.ts';
import { skipPending } from './missedRuns.ts';
import { rejectTakenName } from './names.ts';
import { ConcurrentChange, retryChanged } from './retryChanged.ts';
import type { RunDecisions } from './runDecision.ts';
import { createSaveSchedule, enabledChange } from './saveSchedule.ts';
import { scheduleRecord } from './scheduleAudit.ts';
import { createSchedulePermissions } from './schedulePermissions.ts';
import { createUpdateSchedule, type ScheduleUpdate } from './updateSchedule.ts';

export type Schedules = ReturnType<typeof createSchedules>;

export type BackupScheduleFields = {
  name: string;
  cronExpression: string;
  timezone?: string;
  enabled?: boolean;
  jobType?: typeof BACKUP_JOB | typeof VERIFY_JOB;
} & BackupOptions;

/** A schedule with its latest run by scheduled time. */
export type ScheduleWithLastRun = { schedule: ScheduleData; lastRun: ScheduleRunWithJob | null };

/** A schedule as it was saved, and advice about the request. */
export type SavedSchedule = ScheduleWithLastRun & { warnings: readonly Warning[] };

type Deps = {
  db: Knex;
  commit: Commit;
  access: Access;
  ids: Ids;
  jobTypes: JobTypes;
  jobTargets: JobTargets;
  jobReferences: JobReferences;
  runDecisions: RunDecisions;
};

/** Error: `invalid_request` for fields that do not belong to the job type. */
function checkBackupOptions(
  jobType: typeof BACKUP_JOB | typeof VERIFY_JOB,
  options: BackupOptions,
): void {
  const unexpected =
    jobType === VERIFY_JOB ? Object.keys(options).filter((field) => field !== 'label') : [];
  if (unexpected.length > 0)
    throw invalidFields(
      unexpected.map((field) => ({
        in: 'body' as const,
        pointer: `/${field}`,
        code: 'not_for_verify',
        message: 'is allowed for schedules of backup.create only',
      })),
    );
}

/** Schedules: the records that create jobs at the occurrences of a cron expression. */
export function createSchedules(deps: Deps) {
  const { db, commit, access, ids, jobTypes, runDecisions } = deps;
  const repository = scopedRepository<Schedule>(Schedule, {
    db,
    commit,
    access,
    kind: 'schedule',
    readPermission: 'schedule:read',
    softDelete: true,
  });
  const permissions = createSchedulePermissions(deps);
  const saveSchedule = createSaveSchedule({ ids, runDecisions });
  const updateSchedule = createUpdateSchedule({ repository, jobTypes, permissions, saveSchedule });

  async function withLastRuns(schedules: readonly Schedule[]): Promise<ScheduleWithLastRun[]> {
    const runs = await ScheduleRun.query(db).findByIds(
      schedules.flatMap(({ lastRunId }) => lastRunId ?? []),
    );
    const byId = new Map<string | null, ScheduleRunWithJob>(
      (await withJobs(db, runs)).map((run) => [run.id, run]),
    );
    return schedules.map((schedule) => ({
      schedule,
      lastRun: byId.get(schedule.lastRunId) ?? null,
    }));
  }

  const withLastRun = async (schedule: Schedule): Promise<ScheduleWithLastRun> =>
    assertDefined((await withLastRuns([schedule]))[0], 'schedule with last run');

  /** The row of a new schedule at the caller's tenant, with defaults for missing fields. */
  function newSchedule(
    caller: Caller,
    fields: ScheduleFields & { spreadSeconds: number },
    timing: Timing,
    { now, dueAfter }: { now: Date; dueAfter: Date },
  ) {
    const { startAt, endAt, timezone } = timing;
    const timingFields = {
      cronExpression: fields.cronExpression.trim(),
      timezone,
      startAt,
      endAt,
      maxRuns: fields.maxRuns ?? null,
      runCount: 0,
    };
    return {
      id: ids.next('sch'),
      tenantId: caller.tenantId,
      name: fields.name,
      description: fields.description ?? '',
      ...timingFields,
      jobType: fields.jobType,
      payload: fields.payload ?? {},
      target: fields.target ?? null,
      payloadAuthor: writerKeyOf(caller),
      retryPolicy: fields.retryPolicy ?? {},
      overlapPolicy: fields.overlapPolicy ?? ('skip' as const),
      catchupWindowSeconds: fields.catchupWindowSeconds ?? DEFAULT_CATCHUP_SECONDS,
      jitterSeconds: fields.jitterSeconds ?? 0,
      spreadSeconds: fields.spreadSeconds,
      ...enabledChange(fields.enabled ?? true, caller.actorId, null, now),
      owner: authorityOf(caller),
      nextDueAt: nextOccurrenceOf(timingFields, dueAfter),
      lastRunId: null,
      checkedAt: now,
      createdBy: caller.actorId,
      createdAt: now,
      updatedAt: now,
      deletedAt: null,
      version: 1,
    };
  }

  async function create(
    caller: Caller,
    fields: ScheduleFields,
    pointer?: string,
  ): Promise<SavedSchedule> {
    await access.require(caller, 'schedule:write', caller);
    const { cronExpression, timezone = 'UTC', startAt = null, endAt = null } = fields;
    const timing = checkTiming({ cronExpression, timezone, startAt, endAt });
    // The check fills the defaults of the job type into the payload.
    const payload = fields.payload ?? {};
    const { jobType, target = null, overlapPolicy } = fields;
    const { tenantId } = caller;
    const job = { jobType, payload, target, ...(pointer !== undefined && { pointer }) };
    const warnings = await permissions.checkJob(caller, job);
    await permissions.requireCancel(caller, overlapPolicy, { tenantId, target });
    const created = commit(caller, async (work) => {
      const trx = await work.trx();
      const dueAfter = await readDatabaseTime(trx);
      assertOccurs(timing, dueAfter);
      const owned = await lockOwned(trx, caller.tenantId, 'schedules');
      const spreadSeconds = spreadSecondsOf(owned);
      const times = { now: work.now, dueAfter };
      const row = newSchedule(caller, { ...fields, payload, spreadSeconds }, timing, times);
      const schedule = work.insert(Schedule, row);
      work.result(schedule.id);
      scheduleRecord.created(work, schedule);
      work.dispatch(syncSchedule(schedule));
      return { schedule, lastRun: null, warnings };
    });
    return created.catch(rejectTakenName(fields.name));
  }

  const setEnabled = (
    caller: Caller,
    id: string,
    enabled: boolean,
    reason: string | undefined,
    expectedVersion?: number,
  ): Promise<ScheduleWithLastRun> =>
    retryChanged(async () => {
      const known = await repository.findToAct(caller, id, 'schedule:write');
      if (enabled) {
        await permissions.requireCancel(caller, known.overlapPolicy, known);
        await permissions.requireToRun(caller, known);
      }
      const pauseReason = reason ?? null;
      const saved = await repository.commitLocked(
        caller,
        known,
        expectedVersion,
        async (work, before, trx) => {
          // The permission was checked for the record as it was read.
          if (enabled && before.version !== known.version) throw new ConcurrentChange();
          if (enabled) requireTiming(before);
          return saveSchedule(work, trx, before, {
            changed: enabledChange(enabled, caller.actorId, pauseReason, work.now),
            verb: enabled ? 'resume' : 'pause',
            now: await readDatabaseTime(trx),
            details: { reason: pauseReason },
          });
        },
      );
      return withLastRun(saved);
    });

  return {
    /**
     * A schedule that the caller acts on with `permission`. Errors: `not_found`,
     * `permission_denied`.
     */
    findToAct: repository.findToAct,

    /** See `createSchedulePermissions`. Errors: `permission_denied`. */
    requireCancelPermission: permissions.requireCancel,
    requireToRun: permissions.requireToRun,
    mayRun: permissions.mayRun,

    /**
     * A schedule that the caller may read, or has just acted on with `actedWith`. Error:
     * `not_found`.
     */
    read: async (
      caller: Caller,
      id: string,
      actedWith?: Permission,
    ): Promise<ScheduleWithLastRun> => withLastRun(await repository.find(caller, id, actedWith)),

    /** Schedules inside the caller's scope, newest first, without their payloads. */
    async list(caller: Caller, request: ListRequest): Promise<ListAnswer<ScheduleWithLastRun>> {
      const answer = await repository.list(caller, request, {
        refine: (query) => void query.select(SCHEDULE_SUMMARY_COLUMNS),
      });
      return withItems(answer, await withLastRuns(answer.items));
    },

    /**
     * Creates a schedule at the caller's tenant; the caller owns it. Warns when the caller does not
     * hold the permissions of its jobs. Errors: `permission_denied`, `invalid_request` (timing, job
     * type, payload), `conflict` (name).
     */
    create: (caller: Caller, fields: ScheduleFields) => create(caller, fields),

    /**
     * Creates a schedule of `backup.create` or `backup.verify`. Its catch-up window is hours long,
     * since a late backup is better than none. Warns about sections that the mode `full` ignores.
     * Errors: as `create`.
     */
    async createBackup(
      caller: Caller,
      {
        name,
        cronExpression,
        timezone,
        enabled,
        jobType = BACKUP_JOB,
        ...options
      }: BackupScheduleFields,
    ): Promise<SavedSchedule> {
      await access.require(caller, 'schedule:write', caller);
      checkBackupOptions(jobType, options);
      const { request, warnings } = ignoreSectionsOfFull(caller, options);
      const fields = {
        name,
        cronExpression,
        jobType,
        payload: request,
        catchupWindowSeconds: BACKUP_CATCHUP_SECONDS,
        ...(timezone !== undefined && { timezone }),
        ...(enabled !== undefined && { enabled }),
      };
      // The fields of the payload are those of the body.
      const created = await create(caller, fields, '');
      return { ...created, warnings: [...warnings, ...created.warnings] };
    },

    /**
     * Changes the fields in `update`. A caller who changes what the jobs do becomes the owner, and so
     * does one who changes when they run without the permission of their type; warns as `create`.
     * Errors: `not_found`, `permission_denied`, `invalid_request`, `conflict` (name),
     * `version_conflict`, `unavailable`.
     */
    update: async (
      caller: Caller,
      id: string,
      update: ScheduleUpdate,
      expectedVersion?: number,
    ): Promise<SavedSchedule> => {
      const { saved, warnings } = await updateSchedule(caller, id, update, expectedVersion);
      return { ...(await withLastRun(saved)), warnings };
    },

    /** Errors: `not_found`, `permission_denied`, `version_conflict`. */
    pause: (caller: Caller, id: string, reason: string | undefined, expectedVersion?: number) =>
      setEnabled(caller, id, false, reason, expectedVersion),

    /**
     * Resumes a schedule; occurrences during the pause stay skipped. Errors: `not_found`,
     * `permission_denied` (also the permission of the job type, and `job:cancel` with `cancelOther`),
     * `schedule_not_runnable` (its occurrences are not known), `version_conflict`, `unavailable`.
     */
    resume: (caller: Caller, id: string, reason: string | undefined, expectedVersion?: number) =>
      setEnabled(caller, id, true, reason, expectedVersion),

    /**
     * Stops future runs; jobs and runs remain. Errors: `not_found`, `permission_denied`,
     * `version_conflict`, `legal_hold`.
     */
    async remove(caller: Caller, id: string, expectedVersion?: number): Promise<void> {
      const known = await repository.findToAct(caller, id, 'schedule:write');
      await repository.commitLocked(caller, known, expectedVersion, async (work, before, trx) => {
        await assertNotHeld(
          { access, caller },
          trx,
          before.tenantId,
          scheduleRecord.subject(before),
        );
        const now = await readDatabaseTime(trx);
        await skipPending(work, trx, ids, before, { reason: 'deleted', now, nextDueAt: null });
        await runDecisions.skipBuffered(work, trx, before, 'deleted');
        await Schedule.query(trx)
          .findById(id)
          .patch({
            nextDueAt: null,
            deletedAt: work.now,
            updatedAt: work.now,
            version: before.version + 1,
          });
        scheduleRecord.deleted(work, before);
        work.dispatch(syncSchedule(before));
      });
    },
  };
}
