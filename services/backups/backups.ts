import { withItems, type ListAnswer, type ListRequest } from '../../domain/shared/lists.ts';
import {
  findReferencedSections,
  findSectionReferences,
  tablesOf,
} from '../../db/backups/catalog.ts';
import { findBackupLogs, type BackupLog } from '../../db/backups/logs.ts';
import { findJobUsingArchive, findLastRun } from '../../db/backups/restoreRuns.ts';
import { findRestoreAfter } from '../../db/backups/runHistory.ts';
import { queryIn } from '../../db/backups/sql.ts';
import type { Commit, Work } from '../../db/core/commit.ts';
import type { Knex } from '../../db/core/knex.ts';
import type { Notifications } from '../../db/core/notifications.ts';
import { scopedRepository } from '../../db/core/scopedRepository.ts';
import { Backup } from '../../db/models/Backup.ts';
import { Job } from '../../db/models/Job.ts';
import type { Permission } from '../../domain/access/permissions.ts';
import {
  BACKUP_JOB,
  DEFAULT_ENGINE,
  isInProgress,
  type BackupEngine,
  type BackupMode,
  type Section,
} from '../../domain/backups/backups.ts';
import type { BackupData, BackupView, RestoreRunData } from '../../domain/backups/records.ts';
import type { RetentionPolicy } from '../../domain/backups/retention.ts';
import { removeBackupTask } from '../../domain/dispatch/tasks.ts';
import { isFinal, type JobError } from '../../domain/jobs/jobs.ts';
import { assertDefined } from '../../domain/shared/assert.ts';
import type { Caller } from '../../domain/shared/caller.ts';
import { AppError, notFound } from '../../domain/shared/errors.ts';
import type { Warning } from '../../domain/shared/warnings.ts';
import type { Ids } from '../../platform/ids.ts';
import { archiveName } from '../../platform/stores/store.ts';
import type { Slots } from '../../platform/slots.ts';
import type { Access } from '../access/access.ts';
import type { JobFactory } from '../jobs/createJob.ts';
import { jobFinishedTopic } from '../jobs/jobAudit.ts';
import type { JobTypes } from '../jobTypes/registry.ts';
import { assertBackupNotHeld } from '../retention/assertNotHeld.ts';
import { createWaitForEnd, type WaitLimits } from '../shared/waitForEnd.ts';
import type { Archives, ArchiveTarget } from './archives.ts';
import { archiveRemovedTopic, backupRecord } from './backupAudit.ts';
import { toBackupViews } from './backupViews.ts';
import { EMPTY_BACKUP } from './newBackup.ts';
import { ignoreSectionsOfFull, selectSections } from './selectSections.ts';

export type Backups = ReturnType<typeof createBackups>;

/** What a backup request asks for. */
export type BackupOptions = {
  mode?: BackupMode;
  sections?: readonly string[];
  engine?: BackupEngine;
  label?: string;
  retention?: RetentionPolicy;
};

/** The sections of a backup: requested, and included because those refer to them. */
type Selection = { sections: Section[]; includes: Section[] };

/** A backup with its last validation or restore. */
export type BackupDetail = {
  backup: BackupView;
  lastValidation: (RestoreRunData & { jobError: JobError | null }) | null;
  /** Why its archive cannot be reached; see `storeProblemOf`. */
  storeProblem: string | null;
  /** The restore before which it was made. */
  preRestoreOf: { jobId: string; backupId: string } | null;
};

type Deps = {
  notifications: Notifications;
  slots: { waits: Slots };
  db: Knex;
  commit: Commit;
  access: Access;
  ids: Ids;
  archives: Archives;
  jobFactory: JobFactory;
  jobTypes: JobTypes;
};

/** How long a request to delete waits until the archive is removed. */
const REMOVAL_WAIT_MS = 3_000;

/** The number of log lines in the list of backups. */
const LIST_LOG_LINES = 50;

/** The operations on backups that callers request. The steps of a run are in `backupRun.ts`. */
export function createBackups({
  db,
  commit,
  access,
  ids,
  archives,
  jobFactory,
  jobTypes,
  notifications,
  slots,
}: Deps) {
  const waitForEnd = createWaitForEnd({ notifications, slots });

  const repository = scopedRepository<Backup>(Backup, {
    db,
    commit,
    access,
    kind: 'backup',
    readPermission: 'backup:read',
  });

  /**
   * A backup that the caller may read, or has just acted on with `actedWith`. Error: `not_found`.
   */
  const find = async (caller: Caller, id: string, actedWith?: Permission): Promise<Backup> =>
    assertNotDeleted(await repository.find(caller, id, actedWith));

  /**
   * A backup that the caller acts on with `permission`. Errors: `not_found`, `permission_denied`.
   */
  const findToAct = async (caller: Caller, id: string, permission: Permission): Promise<Backup> =>
    assertNotDeleted(await repository.findToAct(caller, id, permission));

  async function select(caller: Caller, request: BackupOptions): Promise<Selection> {
    const sections = await selectSections(access, caller, request);
    const includes = await findReferencedSections(queryIn(db), caller.tenantId, sections);
    return { sections, includes };
  }

  /** Adds a new backup with its audit entry and event to a commit. */
  function insert(
    work: Work,
    caller: Caller,
    request: BackupOptions,
    { sections, includes, jobId }: Selection & { jobId: string | null },
  ): Backup {
    const id = ids.next('bkp');
    const backup = work.insert(Backup, {
      ...EMPTY_BACKUP,
      id,
      tenantId: caller.tenantId,
      mode: request.mode ?? 'full',
      sections,
      includes,
      engine: request.engine ?? DEFAULT_ENGINE,
      label: request.label ?? '',
      retention: request.retention ?? {},
      status: 'queued',
      jobId,
      store: archives.targetStore(),
      archive: archiveName(id),
      createdBy: caller.actorId,
      createdAt: work.now,
      updatedAt: work.now,
      checkAt: work.now,
    });
    backupRecord.created(work, backup, { extra: { jobId } });
    return backup;
  }

  return {
    find,
    findToAct,
    insert,

    /** Waits until the job of a backup has ended, or until the limits are reached. */
    async waitFor(
      caller: Caller,
      backup: Pick<BackupData, 'jobId'>,
      limits: WaitLimits,
    ): Promise<void> {
      const jobId = assertDefined(backup.jobId, 'backup.jobId');
      const read = async () => {
        const job = await Job.query(db).findById(jobId).select('status');
        return job === undefined || isFinal(job.status);
      };
      await waitForEnd(
        caller,
        {
          topic: jobFinishedTopic(jobId),
          read,
          isFinished: (hasEnded) => hasEnded,
          hasEnded: read,
        },
        limits,
      );
    },

    /** Waits up to 3 seconds until the archive of a deleted backup is removed. */
    async waitForRemoval(caller: Caller, id: string, signal: AbortSignal): Promise<void> {
      const read = async () =>
        (await Backup.query(db).findById(id).select('status'))?.status === 'deleted';
      await waitForEnd(
        caller,
        {
          topic: archiveRemovedTopic(id),
          read,
          isFinished: (isRemoved) => isRemoved,
          hasEnded: read,
        },
        { waitMs: REMOVAL_WAIT_MS, signal },
      );
    },

    /** `actedWith` as in `find`. Error: `not_found`. */
    async read(caller: Caller, id: string, actedWith?: Permission): Promise<BackupDetail> {
      const backup = await find(caller, id, actedWith);
      const [view] = await toBackupViews(db, [backup]);
      const lastValidation = await findLastRun(db, id, ['validate', 'restore']);
      const preRestoreOf = backup.jobId === null ? await findRestoreAfter(db, id) : null;
      const storeProblem = archives.storeProblemOf(backup);
      return { backup: assertDefined(view, 'backup'), lastValidation, storeProblem, preRestoreOf };
    },

    /** The backups that the caller may read. */
    async list(caller: Caller, request: ListRequest): Promise<ListAnswer<BackupView>> {
      const answer = await repository.list(caller, request, {
        columns: { archiveError: `(archive_error ->> 'code')` },
        refine: (query) => void query.whereNotIn('status', ['deleting', 'deleted']),
      });
      return withItems(answer, await toBackupViews(db, answer.items));
    },

    /** The last log lines of backup jobs that the caller may read, newest first. */
    logs: (caller: Caller): Promise<BackupLog[]> =>
      findBackupLogs(db, access.scope(caller, 'backup:read'), LIST_LOG_LINES),

    /** The names of the tables of a section. */
    tablesOf: (section: Section): string[] => tablesOf([section]).map(({ name }) => name),

    /** The sections that each section refers to. */
    sectionReferences: (): Promise<Readonly<Record<Section, Section[]>>> =>
      findSectionReferences(queryIn(db)),

    /** Where new backups are stored, and what is missing for that. */
    storage: (): ArchiveTarget => archives.target(),

    /**
     * Checks a request for a backup of the caller's tenant; returns what is missing for it. Errors:
     * `invalid_request`, `permission_denied`.
     */
    async check(caller: Caller, request: BackupOptions): Promise<readonly AppError[]> {
      await selectSections(access, caller, request);
      return archives.target().problems;
    },

    /**
     * Starts a backup of the caller's tenant; at the platform, of the installation. Warns about
     * sections that the mode `full` ignores. Errors: `invalid_request`, `permission_denied`,
     * `not_supported` without a store, `master_key_missing`.
     */
    async create(
      caller: Caller,
      requested: BackupOptions,
    ): Promise<{ backup: BackupData; warnings: Warning[] }> {
      await access.require(caller, 'backup:write', caller);
      const { request, warnings } = ignoreSectionsOfFull(caller, requested);
      const selection = await select(caller, request);
      archives.targetStore();
      const backup = await commit(caller, (work) => {
        const backup = insert(work, caller, request, { ...selection, jobId: null });
        const type = jobTypes.get(BACKUP_JOB);
        const job = jobFactory.create(work, { type, payload: { ...request }, caller });
        backup.jobId = job.id;
        work.result(backup.id);
        return backup;
      });
      return { backup, warnings };
    },

    /**
     * The backup of a job. A job that a schedule, an approval or a caller has created directly has
     * none before it starts. Repeating the call returns the same backup.
     */
    async findOrCreateForJob(
      caller: Caller,
      jobId: string,
      request: BackupOptions,
    ): Promise<Backup> {
      const existing = await Backup.query(db).findOne({ job_id: jobId });
      if (existing) return existing;
      await access.require(caller, 'backup:write', caller);
      const selection = await select(caller, request);
      return commit(caller, (work) => insert(work, caller, request, { ...selection, jobId }));
    },

    /**
     * Deletes a backup; a workflow removes its archive. Errors: `not_found`, `permission_denied`,
     * `backup_busy` while a job makes or loads it, `version_conflict`, `legal_hold`, `not_supported` if its
     * store is not configured.
     */
    async remove(caller: Caller, id: string, expectedVersion?: number): Promise<void> {
      const known = await findToAct(caller, id, 'backup:write');
      await repository.commitLocked(caller, known, expectedVersion, async (work, backup, trx) => {
        assertNotDeleted(backup);
        // Its archive would stay where it is, without a record.
        const storeProblem = archives.storeProblemOf(backup);
        if (storeProblem !== null) throw new AppError('not_supported', storeProblem);
        if (isInProgress(backup))
          throw new AppError('backup_busy', 'The backup is in progress; cancel its job first.');
        const usedBy = await findJobUsingArchive(trx, id);
        if (usedBy) throw new AppError('backup_busy', `The job ${usedBy} needs the archive.`);
        if (backup.status === 'completed')
          await assertBackupNotHeld({ access, caller }, trx, backup.tenantId);
        await markDeleting(work, backup);
      });
    },
  };
}

/** Returns the backup unless it is deleted. Error: `not_found`. */
function assertNotDeleted(backup: Backup): Backup {
  if (['deleting', 'deleted'].includes(backup.status)) throw notFound('backup', backup.id);
  return backup;
}

/** Adds to a commit that a backup is deleted. Its row must be locked. */
export async function markDeleting(
  work: Work,
  backup: Backup,
  reason: string | null = null,
): Promise<void> {
  await Backup.query(await work.trx())
    .findById(backup.id)
    .patch({
      status: 'deleting',
      updatedAt: work.now,
      checkAt: work.now,
      version: backup.version + 1,
    });
  backupRecord.acted(work, 'delete', backup, {
    before: backup,
    ...(reason !== null && { extra: { reason } }),
  });
  work.dispatch(removeBackupTask(backup));
}
