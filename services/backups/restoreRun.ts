import { withBackupConnection } from '../../db/backups/backupConnection.ts';
import { recordLoad } from '../../db/backups/backups.ts';
import type { RunQuery } from '../../db/backups/catalog.ts';
import { findDifferences } from '../../db/backups/differences.ts';
import { createRowSums, findMismatchedTables, loadArchive } from '../../db/backups/loadArchive.ts';
import { planRestore, type RestorePlan } from '../../db/backups/restorePlan.ts';
import { removeTimeouts, storeReport } from '../../db/backups/restoreRuns.ts';
import { backupScope } from '../../db/backups/snapshot.ts';
import { queryIn } from '../../db/backups/sql.ts';
import {
  isComplete,
  migrateToCurrent,
  readStagedHeader,
  stagingSchema,
  type LoadedArchive,
  type Staging,
} from '../../db/backups/staging.ts';
import { cancelOnAbort } from '../../db/core/cancelOnAbort.ts';
import type { Migrations } from '../../db/core/migration.ts';
import type { WriteUnaudited } from '../../db/core/commit.ts';
import type { Knex } from '../../db/core/knex.ts';
import { MIGRATIONS } from '../../db/migrations/index.ts';
import { Backup, RestoreRun } from '../../db/models/Backup.ts';
import { scopeOf } from '../../domain/access/scope.ts';
import {
  isArchiveError,
  isSection,
  permissionsToRestore,
  type Section,
} from '../../domain/backups/backups.ts';
import { JobFailure } from '../../domain/jobs/jobType.ts';
import { counted } from '../../domain/shared/counted.ts';
import type { ArchiveHeader } from '../../platform/archive/index.ts';
import type { Access } from '../access/access.ts';
import { jobFinishedTopic } from '../jobs/jobAudit.ts';
import type { StepTools } from '../jobs/multiStep.ts';
import { asJobFailure, type Archives } from './archives.ts';
import type { ConcurrencyLimit } from './concurrencyLimit.ts';
import { dryRun } from './restoreDryRun.ts';
import { assertPlanHash, restoreInvalid } from './restoreFailures.ts';
import { buildRestoreReport, type RestoreEvaluation } from './restoreReport.ts';

export type RestoreRunSteps = ReturnType<typeof createRestoreRun>;

/** The payload of jobs that load an archive. */
export type RestorePayload = {
  backupId: string;
  sections?: string[];
  planHash?: string;
  confirm?: boolean;
  preRestoreBackup?: boolean;
};

type Deps = {
  access: Pick<Access, 'holds'>;
  db: Knex;
  databaseUrl: string;
  writeUnaudited: WriteUnaudited;
  archives: Archives;
  concurrencyLimit: ConcurrencyLimit;
  migrations?: Migrations;
};

/** The archive that a job has loaded, and how it would be restored. */
type PlannedRestore = { run: RestoreRun; plan: RestorePlan; header: ArchiveHeader };

const payloadOf = ({ payload }: StepTools) => payload as RestorePayload;

/** The steps that load an archive and compare it with the database. Each may be repeated. */
export function createRestoreRun({
  access: { holds },
  db,
  databaseUrl,
  writeUnaudited,
  archives,
  concurrencyLimit,
  migrations = MIGRATIONS,
}: Deps) {
  /** Reads inside a transaction use its connection: waiting requests may occupy the whole pool. */
  async function loadRun(
    tools: StepTools,
    on: Knex = db,
  ): Promise<{ run: RestoreRun; backup: Backup; sections: Section[] }> {
    const run = await RestoreRun.query(on).findById(tools.jobId).throwIfNotFound();
    const backup = await Backup.query(on).findById(run.backupId).throwIfNotFound();
    const sections = (payloadOf(tools).sections ?? backup.sections).filter(isSection);
    return { run, backup, sections };
  }

  async function load(tools: StepTools): Promise<void> {
    const { run, backup } = await loadRun(tools);
    await loadStaging(tools, { run, backup }).catch(async (error: unknown) => {
      const failure = asJobFailure(error);
      if (failure instanceof JobFailure && isArchiveError(failure.code))
        await recordResult(backup, { code: failure.code, message: failure.message });
      throw error;
    });
    await recordResult(backup, null);
    if (run.purpose === 'verify') await tryComparison(tools);
  }

  const recordResult = ({ id }: Backup, archiveError: Backup['archiveError']): Promise<void> =>
    writeUnaudited((on) => recordLoad(on, id, archiveError));

  async function loadStaging(
    tools: StepTools,
    { run, backup }: { run: RestoreRun; backup: Backup },
  ): Promise<void> {
    await withBackupConnection(databaseUrl, tools.signal, async (connection) => {
      const staging: Staging = {
        db,
        connection,
        schema: stagingSchema(tools.jobId),
        migrations,
      };
      const sums = run.purpose === 'verify' ? createRowSums() : undefined;
      const progress = progressOf(backup, tools);
      const loaded = await loadArchive(archives.read(backup), staging, async (part) => {
        progress(part.bytes.length);
        await sums?.add(part);
      });
      if (loaded.header.backupId !== backup.id)
        throw new JobFailure(
          'archive_damaged',
          'The store returned the archive of another backup',
          {
            retryable: false,
          },
        );
      tools.log('info', `Loaded: ${counted(loaded.manifest.rows, 'row')}`, {
        schemaVersion: loaded.header.schemaVersion,
        migrations: loaded.pendingMigrations,
      });
      await recordManifest(backup, loaded);
      if (sums) await assertLoadedUnchanged(staging, loaded, sums);
      await migrateToCurrent(staging, loaded);
    });
  }

  /** Compares a loaded archive with the current records, as a restore does first. Error: `staging_lost`. */
  async function tryComparison(tools: StepTools): Promise<void> {
    tools.progress(55, 'comparing');
    await comparing(tools, async (trx, { plan }) => {
      await findStagedDifferences(queryIn(trx, tools.signal), plan);
    });
  }

  /** Runs `work` with the plan of a restore, in a transaction that sees the records of one instant. */
  const comparing = <T>(
    tools: StepTools,
    work: (trx: Knex, planned: PlannedRestore) => Promise<T>,
  ): Promise<T> =>
    db.transaction(
      async (trx) => {
        await removeTimeouts(trx);
        const planned = await loadPlan(trx, tools);
        return cancelOnAbort(db, trx, tools.signal, () => work(trx, planned));
      },
      { isolationLevel: 'repeatable read' },
    );

  /** Backups that were imported from a store have no manifest before they are loaded. */
  async function recordManifest(backup: Backup, { manifest }: LoadedArchive): Promise<void> {
    if (backup.manifest !== null) return;
    await writeUnaudited(async (on) =>
      Backup.query(on).patch({ manifest, rows: manifest.rows }).where({ id: backup.id }),
    );
  }

  /** Plans the restore of what a job has loaded. Error: `staging_lost`. */
  async function loadPlan(trx: Knex, tools: StepTools): Promise<PlannedRestore> {
    const { run, backup, sections } = await loadRun(tools, trx);
    const query = queryIn(trx);
    const schema = stagingSchema(tools.jobId);
    const header = await readStagedHeader(query, schema);
    if (!header) throw stagingLost('The loaded archive is missing');
    const scope = backupScope(backup.tenantId);
    const plan = await planRestore(query, { schema, scope, sections, archived: header.tables });
    return { run, header, plan };
  }

  /**
   * Reports what a planned restore would do, in a transaction that keeps the differences. Errors:
   * `permission_lost`, `staging_lost`.
   */
  async function evaluate(
    trx: Knex,
    tools: StepTools,
    { run, plan, header }: PlannedRestore,
  ): Promise<RestoreEvaluation> {
    if (run.purpose === 'restore') assertPermissions(tools, plan.sections);
    const query = queryIn(trx, tools.signal);
    await findStagedDifferences(query, plan);
    return buildRestoreReport(query, plan, header, {
      actorId: tools.caller.actorId,
      confirmed: payloadOf(tools).confirm === true,
      writable: scopeOf(tools.caller.rights, 'inventory:write'),
    });
  }

  function assertPermissions({ caller }: StepTools, sections: readonly Section[]): void {
    const missing = permissionsToRestore(sections).filter(
      (permission) => !holds(caller.rights, permission, caller),
    );
    if (missing.length === 0) return;
    throw new JobFailure(
      'permission_lost',
      `The owner of the job no longer holds ${missing.join(', ')}, which these sections require`,
      { retryable: false },
    );
  }

  async function compare(tools: StepTools): Promise<void> {
    tools.progress(55, 'comparing');
    const { run, plan, report, planHash } = await comparing(tools, async (trx, planned) => ({
      ...planned,
      ...(await evaluate(trx, tools, planned)),
    }));
    await dryRun(db, { plan, report, signal: tools.signal });
    const { jobId } = tools;
    await writeUnaudited((on) =>
      storeReport(on, { jobId, report, planHash }, jobFinishedTopic(jobId)),
    );
    const { created, changed, deleted } = report.preview.counts;
    tools.log(
      'info',
      `${counted(created, 'record')} would be created, ${changed} changed, ${deleted} deleted`,
      { valid: report.valid },
    );
    if (run.purpose !== 'restore') return;
    if (!report.valid) throw restoreInvalid(report);
    assertPlanHash(payloadOf(tools).planHash, planHash);
  }

  return {
    /** Loads the archive into a staging schema. */
    load: (tools: StepTools): Promise<void> => concurrencyLimit(tools, () => load(tools)),

    /**
     * Compares the loaded archive with the database and stores the report. Errors of restores:
     * `restore_invalid`, `restore_stale`.
     */
    compare: (tools: StepTools): Promise<void> => concurrencyLimit(tools, () => compare(tools)),

    loadPlan,
    evaluate,
  };
}

/** Reports the progress of loading, which is the first half of a restore. */
function progressOf(backup: Backup, tools: StepTools): (bytes: number) => void {
  const total = (backup.manifest?.tables ?? []).reduce((sum, { bytes }) => sum + bytes, 1);
  let loaded = 0;
  return (bytes) => {
    loaded += bytes;
    tools.progress((50 * loaded) / total, 'loading the archive');
  };
}

/** Error: `test_restore_failed` when the loaded rows differ from the archive. */
async function assertLoadedUnchanged(
  staging: Staging,
  loaded: LoadedArchive,
  sums: ReturnType<typeof createRowSums>,
): Promise<void> {
  const mismatched = await findMismatchedTables(staging, loaded, sums);
  if (mismatched.length === 0) return;
  throw new JobFailure(
    'test_restore_failed',
    `The loaded rows differ from the archive in ${mismatched.join(', ')}`,
    { retryable: false },
  );
}

/** Finds the differences of a loaded archive. Error: `staging_lost`. */
async function findStagedDifferences(query: RunQuery, plan: RestorePlan): Promise<void> {
  if (!(await isComplete(query, plan)))
    throw stagingLost('The loaded archive did not survive a restart of the database');
  await findDifferences(query, plan);
}

const stagingLost = (message: string) =>
  new JobFailure('staging_lost', message, { retryable: false });
