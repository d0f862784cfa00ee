import { applyDifferences, lockForRestore } from '../../db/backups/applyRestore.ts';
import { withBackupConnections } from '../../db/backups/backupConnection.ts';
import { REGISTERED_BY } from '../../db/backups/backups.ts';
import { findRestoredTenants, NO_CHANGES } from '../../db/backups/changedTenants.ts';
import { findDifferences } from '../../db/backups/differences.ts';
import { findNonEmptyTables } from '../../db/backups/emptyDatabase.ts';
import { loadArchive } from '../../db/backups/loadArchive.ts';
import { LARGE_TABLE_BYTES } from '../../db/backups/loadBulk.ts';
import { createIndexes, lockLiveTables, replaceTables } from '../../db/backups/newTables.ts';
import { countForQuotas } from '../../db/backups/recountQuotas.ts';
import { planRestore } from '../../db/backups/restorePlan.ts';
import { resumeSchedules } from '../../db/backups/resumeSchedules.ts';
import { queryIn } from '../../db/backups/sql.ts';
import {
  dropStaging,
  dropUnusedStaging,
  isComplete,
  migrateToCurrent,
  StagingBusy,
  type LoadedArchive,
  type Staging,
} from '../../db/backups/staging.ts';
import type { Migrations } from '../../db/core/migration.ts';
import { createCommit, type Commit, type Work } from '../../db/core/commit.ts';
import { readDatabaseTime } from '../../db/core/databaseTime.ts';
import type { Knex } from '../../db/core/knex.ts';
import { MIGRATIONS } from '../../db/migrations/index.ts';
import { Backup } from '../../db/models/Backup.ts';
import { PLATFORM } from '../../domain/access/scope.ts';
import { isSection, SECTIONS } from '../../domain/backups/backups.ts';
import { systemCaller } from '../../domain/shared/caller.ts';
import type { ArchiveHeader, ArchivePart } from '../../platform/archive/index.ts';
import { createIds } from '../../platform/ids.ts';
import { archiveName, type ArchiveStore, type StoredArchive } from '../../platform/stores/store.ts';
import { recordInTenants } from './applyRestore.ts';
import { backupRecord } from './backupAudit.ts';
import { EMPTY_BACKUP } from './newBackup.ts';

type Deps = { db: Knex; databaseUrl: string; commit: Commit };

const STAGING_SCHEMA = 'import_archive';
const LOCK_TIMEOUT_MS = 10_000;
const USE_API = 'Restore into a running installation with POST /api/backup/restore.';

/** Connections that load rows and create indexes concurrently. */
const CONNECTIONS = 2;

type ImportOptions = {
  migrations?: Migrations;
  signal?: AbortSignal;
  largeTableBytes?: number;
};

/**
 * Restores an archive into a database that has the current schema and no records, all or nothing.
 * For disaster recovery. Large tables are loaded and indexed as new tables by several connections,
 * and replace the empty ones at the end. Errors: `Error` when the database has records or the
 * archive is of a tenant, `ArchiveError`, `ArchiveTooNew`, `StagingBusy` while another restore runs.
 */
export async function importArchive(
  { db, databaseUrl }: Omit<Deps, 'commit'>,
  parts: AsyncIterable<ArchivePart>,
  {
    migrations = MIGRATIONS,
    signal = new AbortController().signal,
    largeTableBytes = LARGE_TABLE_BYTES,
  }: ImportOptions = {},
): Promise<Pick<LoadedArchive, 'header' | 'manifest'> & { replaced: string[] }> {
  const nonEmpty = await findNonEmptyTables(db);
  if (nonEmpty.length > 0)
    throw new Error(
      `The database is not empty: there are rows in ${nonEmpty.join(', ')}. ${USE_API}`,
    );
  const newTables = new Set<string>();
  try {
    return await withBackupConnections(
      databaseUrl,
      { signal, count: CONNECTIONS },
      async (connections) => {
        const bulk = { connections, largeTableBytes, newTables };
        const [connection] = connections;
        const staging = { db, connection, schema: STAGING_SCHEMA, migrations, bulk };
        const loaded = await load(parts, staging);
        await createIndexes(connections, STAGING_SCHEMA, newTables);
        // Until then the connection keeps the lock on the schema: a second restore is refused.
        const replaced = await commitAlone(db)(systemCaller(PLATFORM, 'restore'), (work) =>
          apply(work, loaded.header, newTables),
        );
        return { ...loaded, replaced: [...replaced] };
      },
    );
  } catch (error) {
    // The next restore drops it otherwise; the reason is the first error.
    if (!(error instanceof StagingBusy))
      await dropUnusedStaging(db, STAGING_SCHEMA).catch(() => undefined);
    throw error;
  }
}

/** Commits without the processes that react: none runs beside a command that restores. */
const commitAlone = (db: Knex): Commit =>
  createCommit({
    db,
    ids: createIds(),
    dispatcher: { canDispatchInline: () => false, onCommitted: () => undefined },
    dispatchGraceMs: 0,
    onEventsCommitted: () => undefined,
    onSlotAwaited: () => undefined,
    onChanged: () => undefined,
  });

async function load(parts: AsyncIterable<ArchivePart>, staging: Staging): Promise<LoadedArchive> {
  const loaded = await loadArchive(parts, staging);
  const { tenantId } = loaded.header;
  if (tenantId !== PLATFORM)
    throw new Error(`The archive contains the tenant ${tenantId} only. ${USE_API}`);
  await migrateToCurrent(staging, loaded);
  return loaded;
}

async function apply(
  work: Work,
  header: ArchiveHeader,
  newTables: ReadonlySet<string>,
): Promise<ReadonlySet<string>> {
  const trx = await work.trx();
  const query = queryIn(trx);
  const plan = await planRestore(query, {
    schema: STAGING_SCHEMA,
    scope: { tenantId: null },
    sections: SECTIONS,
    archived: header.tables,
    intoEmptyDatabase: true,
  });
  if (!(await isComplete(query, plan)))
    throw new Error('The loaded archive did not survive a restart of the database.');
  await lockForRestore(trx, plan, LOCK_TIMEOUT_MS);
  await lockLiveTables(trx, newTables, LOCK_TIMEOUT_MS);
  if ((await findNonEmptyTables(trx)).length > 0)
    throw new Error('Records were created while the archive was loaded.');
  const { replaced, finish } = await replaceTables(trx, STAGING_SCHEMA, newTables);
  await findDifferences(query, plan, replaced);
  const { schedules } = await applyDifferences(trx, plan, { replaced });
  await resumeSchedules(trx, schedules, await readDatabaseTime(trx));
  await finish();
  await countForQuotas(query, replaced);
  const tenants = await findRestoredTenants(query, plan);
  tenants.set(PLATFORM, tenants.get(PLATFORM) ?? NO_CHANGES);
  recordInTenants(work, header.backupId, { jobId: null, sections: plan.sections, tenants });
  // Views would hinder later migrations: the schema ends with this transaction, whatever is killed.
  await dropStaging(trx, STAGING_SCHEMA);
  return replaced;
}

/**
 * Creates records for the archives of a store that the database does not know. `headerOf` returns
 * the header of an archive, or undefined when it cannot be read. Returns the number of new records.
 */
export async function registerArchives(
  { db, commit }: Pick<Deps, 'db' | 'commit'>,
  store: Pick<ArchiveStore, 'kind' | 'list'>,
  headerOf: (archive: StoredArchive) => Promise<ArchiveHeader | undefined>,
): Promise<number> {
  let registered = 0;
  for await (const archive of store.list()) {
    const header = await headerOf(archive);
    // A copy under another name is not the archive of its backup.
    if (!header || header.auditSegment || archive.name !== archiveName(header.backupId)) continue;
    if (await Backup.query(db).findById(header.backupId)) continue;
    await commit(systemCaller(header.tenantId, 'register'), (work) => {
      const at = new Date(header.createdAt);
      const backup = work.insert(Backup, {
        ...EMPTY_BACKUP,
        id: header.backupId,
        tenantId: header.tenantId,
        mode: header.mode,
        sections: header.sections.filter(isSection),
        includes: header.includes.filter(isSection),
        engine: header.engine,
        label: 'imported from store',
        retention: {},
        status: 'completed',
        store: store.kind,
        archive: archive.name,
        sizeBytes: archive.sizeBytes,
        schemaVersion: header.schemaVersion,
        appVersion: header.appVersion,
        snapshotAt: at,
        createdBy: REGISTERED_BY,
        createdAt: at,
        updatedAt: work.now,
        finishedAt: at,
        checkAt: work.now,
      });
      backupRecord.acted(work, 'register', backup, { after: backup });
    });
    registered += 1;
  }
  return registered;
}
