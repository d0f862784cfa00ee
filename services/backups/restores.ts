import { lockToLoad } from '../../db/backups/restoreRuns.ts';
import { isKnownSchema } from '../../db/backups/staging.ts';
import type { Commit } from '../../db/core/commit.ts';
import type { Knex } from '../../db/core/knex.ts';
import type { Notifications } from '../../db/core/notifications.ts';
import { Backup, RestoreRun } from '../../db/models/Backup.ts';
import { Job } from '../../db/models/Job.ts';
import type { Permission } from '../../domain/access/permissions.ts';
import {
  permissionsToRestore,
  RESTORE_JOB,
  VALIDATE_JOB,
  type LoadPurpose,
  type Section,
} from '../../domain/backups/backups.ts';
import type { RestoreJobData, RestoreRunData } from '../../domain/backups/records.ts';
import { isFinal } from '../../domain/jobs/jobs.ts';
import { JobFailure } from '../../domain/jobs/jobType.ts';
import type { Caller } from '../../domain/shared/caller.ts';
import { AppError, invalidField, notFound } from '../../domain/shared/errors.ts';
import type { Slots } from '../../platform/slots.ts';
import type { Access } from '../access/access.ts';
import type { JobFactory } from '../jobs/createJob.ts';
import { jobFinishedTopic } from '../jobs/jobAudit.ts';
import type { JobTypes } from '../jobTypes/registry.ts';
import { createWaitForEnd, type WaitLimits } from '../shared/waitForEnd.ts';
import { backupRecord } from './backupAudit.ts';
import type { Backups } from './backups.ts';
import type { RestorePayload } from './restoreRun.ts';

export type Restores = ReturnType<typeof createRestores>;

/** A job that loads an archive, and what it has recorded. */
export type RestoreView = { job: RestoreJobData; run: RestoreRunData };

type Deps = {
  access: Access;
  db: Knex;
  commit: Commit;
  backups: Backups;
  jobFactory: JobFactory;
  jobTypes: JobTypes;
  notifications: Notifications;
  slots: { waits: Slots };
};

const PURPOSE_PERMISSIONS: Readonly<Record<LoadPurpose, Permission>> = {
  validate: 'backup:read',
  restore: 'backup:restore',
  verify: 'backup:write',
};

/** Validations and restores that callers request. The steps of a run are in `restoreRun.ts`. */
export function createRestores({
  access,
  db,
  commit,
  backups,
  jobFactory,
  jobTypes,
  notifications,
  slots,
}: Deps) {
  const waitForEnd = createWaitForEnd({ notifications, slots });

  /** Error: `permission_denied` when the caller may not restore the requested sections. */
  async function requireSections(
    caller: Caller,
    backup: Backup,
    payload: Pick<RestorePayload, 'sections'>,
  ): Promise<void> {
    const sections = sectionsOf(backup, payload);
    // It would make passwords, providers and tokens.
    if (caller.rights.token && sections.includes('access'))
      throw new AppError('token_not_accepted', 'An API token cannot restore the section access.');
    for (const permission of permissionsToRestore(sections))
      await access.require(caller, permission, backup);
  }

  async function start(
    caller: Caller,
    type: string,
    purpose: LoadPurpose,
    payload: RestorePayload,
  ): Promise<RestoreView> {
    const backup = await backups.findToAct(caller, payload.backupId, PURPOSE_PERMISSIONS[purpose]);
    await assertRestorable(db, backup, payload);
    if (purpose === 'restore') await requireSections(caller, backup, payload);
    const callerAtTenant = { ...caller, tenantId: backup.tenantId };
    return commit(callerAtTenant, async (work) => {
      const trx = await work.trx();
      const locked = await lockToLoad(trx, backup.id);
      if (!locked) throw notFound('backup', backup.id);
      await assertRestorable(trx, locked, payload);
      const job = jobFactory.create(work, {
        type: jobTypes.get(type),
        payload: { ...payload },
        caller: callerAtTenant,
      });
      const run = work.insert(RestoreRun, newRun(job.id, backup, purpose, work.now));
      backupRecord.acted(work, purpose, backup, {
        extra: { jobId: job.id, sections: payload.sections ?? backup.sections },
      });
      work.result(job.id);
      return { job, run };
    });
  }

  async function read(jobId: string): Promise<RestoreView> {
    const [job, run] = await Promise.all([
      Job.query(db).findById(jobId).throwIfNotFound(),
      RestoreRun.query(db).findById(jobId).throwIfNotFound(),
    ]);
    return { job, run };
  }

  return {
    /**
     * Starts a job that reports what a restore would do. Errors: `not_found`, `permission_denied`,
     * `backup_not_ready`, `restore_invalid`, `invalid_request`.
     */
    validate: (caller: Caller, payload: RestorePayload): Promise<RestoreView> =>
      start(caller, VALIDATE_JOB, 'validate', payload),

    /** Starts a restore. Errors: those of `validate`. */
    restore: (caller: Caller, payload: RestorePayload): Promise<RestoreView> =>
      start(caller, RESTORE_JOB, 'restore', payload),

    /**
     * A run whose backup the caller may read, or has just acted on with `actedWith`. Error:
     * `not_found`.
     */
    async find(caller: Caller, jobId: string, actedWith?: Permission): Promise<RestoreView> {
      const view = await read(jobId);
      await backups.find(caller, view.run.backupId, actedWith);
      return view;
    },

    /** Waits until the job has ended or, with `report`, has compared the archive successfully. */
    waitFor: (
      caller: Caller,
      jobId: string,
      until: 'report' | 'end',
      limits: WaitLimits,
    ): Promise<RestoreView> => {
      const isFinished = (view: RestoreView) =>
        isFinal(view.job.status) || (until === 'report' && hasAcceptedReport(view));
      return waitForEnd(
        caller,
        {
          topic: jobFinishedTopic(jobId),
          read: () => read(jobId),
          isFinished,
          hasEnded: async () => isFinished(await read(jobId)),
        },
        limits,
      );
    },

    /**
     * The run of a job. A job that a schedule, an approval or a caller has created directly has
     * none before it starts. Errors: `JobFailure` with `backup_not_found`, those of `validate`.
     */
    async findOrCreateForJob(
      caller: Caller,
      jobId: string,
      purpose: LoadPurpose,
      payload: Partial<RestorePayload> & { label?: string },
    ): Promise<RestoreRun> {
      const existing = await RestoreRun.query(db).findById(jobId);
      if (existing) return existing;
      // A backup that is deleted when it is locked is not found again: another one is the newest, or none.
      for (;;) {
        const backup = await findRequested(db, caller.tenantId, payload);
        await assertRestorable(db, backup, payload);
        if (purpose === 'restore') await requireSections(caller, backup, payload);
        const created = await db.transaction(async (trx) =>
          (await lockToLoad(trx, backup.id))
            ? RestoreRun.query(trx).insertAndFetch(newRun(jobId, backup, purpose, new Date()))
            : undefined,
        );
        if (created) return created;
      }
    },
  };
}

/**
 * Errors: `backup_not_ready`; `restore_invalid` for an archive of a newer version;
 * `invalid_request` for sections that are not in the backup.
 */
async function assertRestorable(
  db: Knex,
  backup: Backup,
  { sections }: Pick<RestorePayload, 'sections'>,
): Promise<void> {
  if (backup.status !== 'completed')
    throw new AppError(
      'backup_not_ready',
      `The backup is ${backup.status}: there is no archive to read.`,
    );
  if (backup.schemaVersion !== null && !(await isKnownSchema(db, backup.schemaVersion)))
    throw new AppError(
      'restore_invalid',
      `The archive has the unknown schema version ${backup.schemaVersion}.`,
    );
  const available: readonly string[] = backup.sections;
  if (sections?.some((section) => !available.includes(section)))
    throw invalidField(
      'body',
      '/sections',
      'not_in_backup',
      `must be among ${available.join(', ')}`,
    );
}

/**
 * The backup of a tenant that a job's payload names; without an id the newest completed one, of the
 * label if there is one. Error: `backup_not_found`.
 */
async function findRequested(
  db: Knex,
  tenantId: string,
  { backupId, label }: { backupId?: string; label?: string },
): Promise<Backup> {
  const candidates = Backup.query(db)
    .where({ tenant_id: tenantId })
    .whereNotIn('status', ['deleting', 'deleted']);
  const backup =
    backupId === undefined
      ? await candidates
          .where({ status: 'completed', ...(label !== undefined && { label }) })
          .orderBy('snapshot_at', 'desc')
          .first()
      : await candidates.where({ id: backupId }).first();
  if (backup) return backup;
  const what = backupId === undefined ? 'completed backup' : `backup ${backupId}`;
  const which = label === undefined ? '' : ` with the label ${JSON.stringify(label)}`;
  throw new JobFailure('backup_not_found', `The tenant of the job has no ${what}${which}`, {
    retryable: false,
  });
}

/** True when the report is valid and has the plan hash that the request expects, if any. */
function hasAcceptedReport({ job, run }: RestoreView): boolean {
  const { planHash } = job.payload as Partial<RestorePayload>;
  return run.report?.valid === true && (planHash === undefined || planHash === run.planHash);
}

const sectionsOf = (backup: Backup, { sections }: Pick<RestorePayload, 'sections'>): Section[] =>
  backup.sections.filter((section) => sections?.includes(section) ?? true);

const newRun = (jobId: string, { id, tenantId }: Backup, purpose: LoadPurpose, now: Date) => ({
  jobId,
  backupId: id,
  tenantId,
  purpose,
  report: null,
  planHash: null,
  preRestoreBackupId: null,
  outcome: null,
  doneAt: null,
  createdAt: now,
});
