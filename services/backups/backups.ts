import type { TransactionOrKnex } from 'objection';
import { askIn } from '../../db/backups/differences.ts';
import { referredSections } from '../../db/backups/catalog.ts';
import { backupLogs, type BackupLog } from '../../db/backups/logs.ts';
import type { Changes } from '../../db/core/notifications.ts';
import type { Commit, Work } from '../../db/commit.ts';
import { keysetPage, whereGiven, type Page, type PageRequest } from '../../db/core/keyset.ts';
import type { Knex } from '../../db/core/knex.ts';
import { Backup, RestoreRun } from '../../db/models/Backup.ts';
import { Job } from '../../db/models/Job.ts';
import { whereInScope } from '../../db/core/scopeSql.ts';
import {
  BACKUP_JOB,
  DEFAULT_ENGINE,
  isSection,
  sectionsAt,
  type BackupEngine,
  type BackupMode,
  type BackupStatus,
  type Keep,
  type LoadPurpose,
  type Section,
} from '../../domain/backups.ts';
import type { Caller } from '../../domain/shared/caller.ts';
import { AppError, checkVersion, invalidField, notFound } from '../../domain/shared/errors.ts';
import { isFinal, type JobError } from '../../domain/jobs/jobs.ts';
import type { Permission } from '../../domain/access/permissions.ts';
import { PLATFORM } from '../../domain/access/scope.ts';
import type { Clock } from '../../platform/clock.ts';
import { archiveName } from '../../platform/stores/store.ts';
import type { Ids } from '../../platform/ids.ts';
import { removeBackup, type DispatchTask } from '../../temporal/contracts.ts';
import type { Access } from '../access.ts';
import type { JobStarts } from '../jobStarts.ts';
import { jobEnded } from '../jobs/jobAudit.ts';
import type { JobTypes } from '../jobTypes/registry.ts';
import { createWaitForEnd, type WaitLimits } from '../waitForEnd.ts';
import type { Archives } from './archives.ts';
import { backupEvent, backupSubject, backupView, removed } from './trail.ts';

export type Backups = ReturnType<typeof createBackups>;

export type BackupRequest = {
  mode?: BackupMode;
  sections?: readonly string[];
  engine?: BackupEngine;
  label?: string;
  keep?: Keep;
};
export type BackupFilter = { status?: BackupStatus; label?: string; tenantId?: string };

type Look = RestoreRun & { jobError: JobError | null };

/** A backup with the last look at what restoring it would do, and what was wrong with its archive when it was last read. */
export type BackupWithLook = { backup: Backup; look: Look | null; unreadable: JobError | null };

type Deps = {
  changes: Changes;
  clock: Clock;
  db: Knex;
  commit: Commit<DispatchTask>;
  access: Access;
  ids: Ids;
  archives: Archives;
  starts: JobStarts;
  jobTypes: () => JobTypes;
};

/** A removal takes moments, where its store is there. */
const REMOVAL_WAIT_MS = 3_000;

/** Errors of reading an archive that stay until somebody does something about it. */
const UNREADABLE: ReadonlySet<string> = new Set([
  'archive_damaged',
  'archive_cut_off',
  'archive_missing',
  'not_an_archive',
  'not_proven',
  'format_newer',
  'schema_newer',
  'master_key_missing',
]);

/** How many lines the list of backups comes with. */
const LIST_LOG_LINES = 50;

/** What callers do with backups. What their runs do is in `backupSteps.ts`. */
export function createBackups({
  db,
  commit,
  access,
  ids,
  archives,
  starts,
  jobTypes,
  changes,
  clock,
}: Deps) {
  const waitForEnd = createWaitForEnd({ changes, clock });

  const visible = (caller: Caller) => {
    const query = Backup.query(db).whereNotIn('status', ['deleting', 'deleted']);
    whereInScope(query, access.scope(caller, 'backup:read'));
    return query;
  };

  async function find(caller: Caller, id: string): Promise<Backup> {
    const backup = await visible(caller).findById(id);
    if (!backup) throw notFound('backup', id);
    return backup;
  }

  /** A backup that the caller sees, to be acted on with another permission held where it stands. */
  async function findToAct(caller: Caller, id: string, permission: Permission): Promise<Backup> {
    const backup = await find(caller, id);
    await access.require(caller, permission, backup);
    return backup;
  }

  /** The sections of a request. Errors: `invalid_request`, `permission_denied` for those of the installation alone. */
  async function chosen(
    caller: Caller,
    { mode = 'full', sections = [] }: BackupRequest,
  ): Promise<Section[]> {
    const all = sectionsAt(caller.tenantId);
    const known = sections.filter(isSection);
    if (known.length < sections.length)
      throw invalidField('body', '/sections', 'unknown_section', `must be among ${all.join(', ')}`);
    if (known.some((section) => !all.includes(section))) {
      await access.require(caller, 'backup:write', { tenantId: PLATFORM });
      throw invalidField(
        'body',
        '/sections',
        'not_of_tenants',
        `of a tenant must be among ${all.join(', ')}`,
      );
    }
    if (mode === 'partial' && known.length === 0)
      throw invalidField(
        'body',
        '/sections',
        'required',
        'must name at least one for the mode partial',
      );
    if (mode === 'full' && known.length > 0 && all.some((section) => !known.includes(section))) {
      throw invalidField(
        'body',
        '/sections',
        'not_full',
        'must be left out for the mode full; name some with the mode partial',
      );
    }
    return mode === 'full' ? all : all.filter((section) => known.includes(section));
  }

  /** Adds a backup and what is told of it to a commit. */
  function insert(
    work: Work<DispatchTask>,
    caller: Caller,
    request: BackupRequest,
    from: { sections: Section[]; includes: Section[]; jobId: string | null },
  ): Backup {
    const id = ids.next('bkp');
    const backup = work.insert(Backup, {
      id,
      tenantId: caller.tenantId,
      mode: request.mode ?? 'full',
      sections: from.sections,
      includes: from.includes,
      engine: request.engine ?? DEFAULT_ENGINE,
      label: request.label ?? '',
      keep: request.keep ?? {},
      status: 'queued',
      jobId: from.jobId,
      store: archives.target(),
      archive: archiveName(id),
      pending: null,
      sizeBytes: null,
      rows: null,
      manifest: null,
      schemaVersion: null,
      appVersion: null,
      snapshotAt: null,
      verifiedAt: null,
      provenAt: null,
      error: null,
      createdBy: caller.actorId,
      createdAt: work.now,
      updatedAt: work.now,
      finishedAt: null,
      deletedAt: null,
      checkAt: work.now,
      version: 1,
    });
    work.audit('backup.create', backupSubject(backup), {
      after: { ...backupView(backup), jobId: from.jobId },
    });
    work.emit('backup.created', backupSubject(backup), backupEvent(backup));
    return backup;
  }

  async function parts(
    caller: Caller,
    request: BackupRequest,
  ): Promise<{ sections: Section[]; includes: Section[] }> {
    const sections = await chosen(caller, request);
    return { sections, includes: await referredSections(askIn(db), caller.tenantId, sections) };
  }

  /** The last run that loaded a backup's archive, or tried to. A proof alone reports nothing of what a restore would do. */
  async function lastRun(backupId: string, purposes: readonly LoadPurpose[]): Promise<Look | null> {
    const run = await RestoreRun.query(db)
      .alias('r')
      .join('jobs AS j', 'j.id', 'r.job_id')
      .select('r.*', 'j.error AS jobError')
      .where({ 'r.backup_id': backupId })
      .whereIn('r.purpose', [...purposes])
      .whereRaw(`(r.report IS NOT NULL OR j.status IN ('succeeded', 'failed'))`)
      .orderBy('r.job_id', 'desc')
      .first();
    return (run as Look | undefined) ?? null;
  }

  return {
    find,
    findToAct,
    insert,

    /** True when a backup at a tenant is shown to the caller. */
    mayRead: (caller: Caller, tenantId: string): boolean =>
      access.holds(caller.rights, 'backup:read', { tenantId }),

    /** Waits for the end of a backup that was just begun. */
    async waitFor({ id, jobId }: Backup, limits: WaitLimits): Promise<void> {
      const read = async () =>
        isFinal(
          (
            await Job.query(db)
              .findById(jobId ?? '')
              .select('status')
          )?.status ?? 'failed',
        );
      await waitForEnd(
        { topic: jobEnded(jobId ?? id), read, isEnd: (ended) => ended, hasEnded: read },
        limits,
      );
    },

    /** Waits a moment for the archive of a deleted backup to be gone; it will be, whether or not this sees it. */
    async waitForRemoval(id: string, signal: AbortSignal): Promise<void> {
      const read = async () =>
        (await Backup.query(db).findById(id).select('status'))?.status === 'deleted';
      await waitForEnd(
        { topic: removed(id), read, isEnd: (gone) => gone, hasEnded: read },
        { waitMs: REMOVAL_WAIT_MS, signal },
      );
    },

    /** Errors: `not_found`. */
    async read(caller: Caller, id: string): Promise<BackupWithLook> {
      const backup = await find(caller, id);
      const last = await lastRun(id, ['validate', 'restore', 'verify']);
      const look = last?.purpose === 'verify' ? await lastRun(id, ['validate', 'restore']) : last;
      return {
        backup,
        look,
        unreadable: last?.jobError && UNREADABLE.has(last.jobError.code) ? last.jobError : null,
      };
    },

    /** Backups inside the caller's scope, newest first. */
    list(
      caller: Caller,
      { status, label, tenantId }: BackupFilter,
      page: PageRequest,
    ): Promise<Page<Backup>> {
      const query = visible(caller);
      whereGiven(query, { status, label, tenant_id: tenantId });
      return keysetPage(query, page);
    },

    /** The last lines that jobs of backups have logged, newest first, where the caller may see backups. */
    logs: (caller: Caller): Promise<BackupLog[]> =>
      backupLogs(db, access.scope(caller, 'backup:read'), LIST_LOG_LINES),

    /** True when a backup can be made here. */
    canRun: (): boolean => {
      try {
        return archives.target() !== undefined;
      } catch {
        return false;
      }
    },

    /**
     * Begins a backup at the caller's tenant: at the platform of everything, elsewhere of the tenant's records. Errors:
     * `invalid_request`, `permission_denied`, `not_supported` without a store, `master_key_missing`.
     */
    async create(caller: Caller, request: BackupRequest): Promise<{ backup: Backup; job: Job }> {
      await access.require(caller, 'backup:write', caller);
      const from = await parts(caller, request);
      archives.target();
      return commit(caller, (work) => {
        const backup = insert(work, caller, request, { ...from, jobId: null });
        const job = starts.add(
          work,
          jobTypes().get(BACKUP_JOB),
          { type: BACKUP_JOB, payload: { ...request } },
          caller,
        );
        backup.jobId = job.id;
        return { backup, job };
      });
    },

    /** The backup of a job that was made without one: by a schedule, a request or directly. Done twice it is the same as once. */
    async ofJob(caller: Caller, jobId: string, request: BackupRequest): Promise<Backup> {
      const known = await Backup.query(db).findOne({ job_id: jobId });
      if (known) return known;
      await access.require(caller, 'backup:write', caller);
      const from = await parts(caller, request);
      return commit(caller, (work) => insert(work, caller, request, { ...from, jobId }));
    },

    /**
     * Deletes a backup: nobody sees it any more, and a workflow removes its archive. Errors: `not_found`,
     * `permission_denied`, `backup_busy` while it is made or loaded, `version_stale`.
     */
    async remove(caller: Caller, id: string, expectedVersion?: number): Promise<void> {
      const { tenantId } = await findToAct(caller, id, 'backup:write');
      await commit({ ...caller, tenantId }, async (work) => {
        const trx = await work.trx();
        const backup = await Backup.query(trx).findById(id).forUpdate().throwIfNotFound();
        if (['deleting', 'deleted'].includes(backup.status)) throw notFound('backup', id);
        checkVersion(backup, expectedVersion);
        if (backup.status === 'queued' || backup.status === 'running')
          throw new AppError(
            'backup_busy',
            'The backup is still being made; cancel its job first.',
          );
        const reader = await readerOf(trx, id);
        if (reader) throw new AppError('backup_busy', `The job ${reader} needs the archive.`);
        await markDeleting(work, backup);
      });
    },
  };
}

/** The job that loads an archive, or may need it as what was there before. */
export async function readerOf(trx: TransactionOrKnex, id: string): Promise<string | null> {
  const run = await RestoreRun.query(trx)
    .where((either) => either.where({ backup_id: id }).orWhere({ safety_backup_id: id }))
    .whereIn('job_id', (jobs) =>
      jobs.from('jobs').select('id').whereIn('status', ['queued', 'running']),
    )
    .first();
  return run?.jobId ?? null;
}

/** Adds to a commit that a backup, whose row is locked, is deleted: its archive is removed by a workflow. */
export async function markDeleting(
  work: Work<DispatchTask>,
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
  work.audit('backup.delete', backupSubject(backup), {
    before: backupView(backup),
    ...(reason !== null && { after: { reason } }),
  });
  work.dispatch(removeBackup(backup));
}
