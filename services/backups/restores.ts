import type { Changes } from '../../db/core/notifications.ts';
import type { Commit } from '../../db/commit.ts';
import type { Knex } from '../../db/core/knex.ts';
import { Backup, RestoreRun } from '../../db/models/Backup.ts';
import { Job } from '../../db/models/Job.ts';
import { knowsSchema } from '../../db/backups/scratch.ts';
import {
  permissionsToRestore,
  RESTORE_JOB,
  VALIDATE_JOB,
  type LoadPurpose,
  type Section,
} from '../../domain/backups.ts';
import type { Caller } from '../../domain/shared/caller.ts';
import { AppError, invalidField } from '../../domain/shared/errors.ts';
import { isFinal } from '../../domain/jobs/jobs.ts';
import { JobFailure } from '../../domain/jobType.ts';
import type { Permission } from '../../domain/access/permissions.ts';
import type { Clock } from '../../platform/clock.ts';
import type { DispatchTask } from '../../temporal/contracts.ts';
import type { Access } from '../access.ts';
import type { JobStarts } from '../jobStarts.ts';
import { jobEnded } from '../jobs/jobAudit.ts';
import type { JobTypes } from '../jobTypes/registry.ts';
import { createWaitForEnd, type WaitLimits } from '../waitForEnd.ts';
import type { Backups } from './backups.ts';
import type { RestorePayload } from './restoreSteps.ts';
import { backupSubject } from './trail.ts';

export type Restores = ReturnType<typeof createRestores>;

/** What a job loads an archive for, as it is now. */
export type RestoreView = { job: Job; run: RestoreRun };

type Deps = {
  access: Access;
  db: Knex;
  commit: Commit<DispatchTask>;
  backups: Backups;
  starts: JobStarts;
  jobTypes: () => JobTypes;
  changes: Changes;
  clock: Clock;
};

const NEEDS: Readonly<Record<LoadPurpose, Permission>> = {
  validate: 'backup:read',
  restore: 'backup:restore',
  verify: 'backup:write',
};

/** Looking at what a restore would do, and restoring. The steps are in `restoreSteps.ts`. */
export function createRestores({
  access,
  db,
  commit,
  backups,
  starts,
  jobTypes,
  changes,
  clock,
}: Deps) {
  const waitForEnd = createWaitForEnd({ changes, clock });

  /** Errors: `backup_not_ready`, `restore_invalid` for an archive of a newer version, `invalid_request` for sections that are not in it. */
  function check(backup: Backup, { sections }: Pick<RestorePayload, 'sections'>): void {
    if (backup.status !== 'completed')
      throw new AppError(
        'backup_not_ready',
        `The backup is ${backup.status}: there is no archive to read.`,
      );
    if (backup.schemaVersion !== null && !knowsSchema(backup.schemaVersion))
      throw new AppError(
        'restore_invalid',
        `The archive is of schema ${backup.schemaVersion}, which this version of Holdfast does not know.`,
      );
    if (sections?.length === 0)
      throw invalidField(
        'body',
        '/sections',
        'required',
        'must name at least one section, or be left out',
      );
    const missing =
      sections?.filter((section) => !(backup.sections as readonly string[]).includes(section)) ??
      [];
    if (missing.length > 0)
      throw invalidField(
        'body',
        '/sections',
        'not_in_backup',
        `must be among ${backup.sections.join(', ')}`,
      );
  }

  async function begin(
    caller: Caller,
    type: string,
    purpose: LoadPurpose,
    payload: RestorePayload,
  ): Promise<RestoreView> {
    const backup = await backups.findToAct(caller, payload.backupId, NEEDS[purpose]);
    check(backup, payload);
    if (purpose === 'restore')
      for (const permission of permissionsToRestore(sectionsOf(backup, payload)))
        await access.require(caller, permission, backup);
    const at = { ...caller, tenantId: backup.tenantId };
    return commit(at, (work) => {
      const job = starts.add(work, jobTypes().get(type), { type, payload: { ...payload } }, at);
      const run = work.insert(RestoreRun, newRun(job.id, backup, purpose, work.now));
      work.audit(`backup.${purpose}`, backupSubject(backup), {
        after: { jobId: job.id, sections: payload.sections ?? backup.sections },
      });
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
    /** Begins to look at what a restore would do. Errors: `not_found`, `permission_denied`, those of `check`. */
    validate: (caller: Caller, payload: RestorePayload): Promise<RestoreView> =>
      begin(caller, VALIDATE_JOB, 'validate', payload),

    /** Begins a restore. Errors: the same. */
    restore: (caller: Caller, payload: RestorePayload): Promise<RestoreView> =>
      begin(caller, RESTORE_JOB, 'restore', payload),

    /** A run that the caller has begun, or sees. Error: `not_found`. */
    async find(caller: Caller, jobId: string): Promise<RestoreView> {
      const view = await read(jobId);
      await backups.find(caller, view.run.backupId);
      return view;
    },

    /** Waits for the end of the job, or of its look at the records (`report`), whichever is asked for. */
    waitFor: (jobId: string, what: 'report' | 'end', limits: WaitLimits): Promise<RestoreView> => {
      const isEnd = ({ job, run }: RestoreView) =>
        isFinal(job.status) ||
        (what === 'report' &&
          run.report?.valid === true &&
          [undefined, run.planHash].includes((job.payload as Partial<RestorePayload>).planHash));
      return waitForEnd(
        {
          topic: jobEnded(jobId),
          read: () => read(jobId),
          isEnd,
          hasEnded: async () => isEnd(await read(jobId)),
        },
        limits,
      );
    },

    /** The run of a job that was made by a schedule, a request or directly. Errors: `JobFailure`. */
    async ofJob(
      caller: Caller,
      jobId: string,
      purpose: LoadPurpose,
      payload: Partial<RestorePayload> & { label?: string },
    ): Promise<RestoreRun> {
      const known = await RestoreRun.query(db).findById(jobId);
      if (known) return known;
      const there = Backup.query(db)
        .where({ tenant_id: caller.tenantId })
        .whereNotIn('status', ['deleting', 'deleted']);
      if (payload.backupId !== undefined) void there.where({ id: payload.backupId });
      else
        void there
          .where({
            status: 'completed',
            ...(payload.label !== undefined && { label: payload.label }),
          })
          .orderBy('snapshot_at', 'desc');
      const backup = await there.first();
      if (!backup)
        throw new JobFailure(
          'backup_not_found',
          `There is no ${payload.backupId === undefined ? 'completed backup' : `backup ${payload.backupId}`}${payload.label === undefined ? '' : ` with the label ${JSON.stringify(payload.label)}`} at the tenant of the job`,
          { retryable: false },
        );
      check(backup, payload);
      if (purpose === 'restore')
        for (const permission of permissionsToRestore(sectionsOf(backup, payload)))
          await access.require(caller, permission, backup);
      return RestoreRun.query(db).insertAndFetch(newRun(jobId, backup, purpose, clock.now()));
    },
  };
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
  safetyBackupId: null,
  outcome: null,
  doneAt: null,
  createdAt: now,
});
