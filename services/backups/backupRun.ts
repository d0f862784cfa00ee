import { randomUUID } from 'node:crypto';
import { claimAttempt, patchInProgress, recordWritten } from '../../db/backups/backups.ts';
import { findReferencedSections, tablesOf } from '../../db/backups/catalog.ts';
import { backupScope, withSnapshot, type Snapshot } from '../../db/backups/snapshot.ts';
import type { WriteUnaudited } from '../../db/core/commit.ts';
import type { Knex } from '../../db/core/knex.ts';
import { Backup } from '../../db/models/Backup.ts';
import { isInProgress, type BackupEngine } from '../../domain/backups/backups.ts';
import { JobFailure } from '../../domain/jobs/jobType.ts';
import { counted } from '../../domain/shared/counted.ts';
import type { ArchivedTable, ArchiveHeader } from '../../platform/archive/index.ts';
import type { ArchiveUpload, PendingUpload } from '../../platform/stores/store.ts';
import type { StepTools } from '../jobs/multiStep.ts';
import type { Archives } from './archives.ts';
import type { ConcurrencyLimit } from './concurrencyLimit.ts';

export type BackupRunSteps = ReturnType<typeof createBackupRun>;

type Deps = {
  db: Knex;
  databaseUrl: string;
  writeUnaudited: WriteUnaudited;
  archives: Archives;
  concurrencyLimit: ConcurrencyLimit;
  appVersion: string;
};

const failure = (code: string, message: string) =>
  new JobFailure(code, message, { retryable: false });

/** The steps that make a backup. Each may be repeated. */
export function createBackupRun({
  db,
  databaseUrl,
  writeUnaudited,
  archives,
  concurrencyLimit,
  appVersion,
}: Deps) {
  /** Error: `backup_already_finished`. */
  async function findInProgress(id: string): Promise<Backup> {
    const backup = await Backup.query(db).findById(id).throwIfNotFound();
    if (!isInProgress(backup))
      throw failure('backup_already_finished', `The backup is already ${backup.status}`);
    return backup;
  }

  async function snapshot(id: string, tools: StepTools): Promise<void> {
    const backup = await findInProgress(id);
    const attempt = randomUUID();
    const isClaimed = await writeUnaudited((on, now) => claimAttempt(on, { id, attempt, now }));
    if (!isClaimed) throw failure('attempt_superseded', 'Another attempt has made this backup');
    const store = archives.storeOf(backup);
    const scope = backupScope(backup.tenantId);
    await withSnapshot(databaseUrl, scope, tools.signal, async (records) => {
      const upload = await store.startUpload(backup.archive);
      const { written, pending } = await writeUpload(backup, records, upload, tools);
      const isRecorded = await writeUnaudited((on, now) =>
        recordWritten(
          on,
          { id, attempt },
          { ...written, pending: { attempt, upload: pending }, updatedAt: now },
        ),
      );
      if (isRecorded) return;
      await upload.abort().catch(() => undefined);
      throw failure('attempt_superseded', 'Another attempt is making this backup');
    });
  }

  /** Writes all rows and finishes the upload, or aborts it. */
  async function writeUpload(
    backup: Backup,
    records: Snapshot,
    upload: ArchiveUpload,
    tools: StepTools,
  ): Promise<{ written: Partial<Backup>; pending: PendingUpload }> {
    try {
      const written = await writeArchive(backup, records, upload, tools);
      return { written, pending: await upload.finish() };
    } catch (error) {
      // What is left is removed later; the reason is the first error.
      await upload.abort().catch(() => undefined);
      throw error;
    }
  }

  async function writeArchive(
    backup: Backup,
    records: Snapshot,
    upload: ArchiveUpload,
    { progress, log, signal }: StepTools,
  ): Promise<Partial<Backup>> {
    const { id: backupId, tenantId, engine, mode, sections } = backup;
    const { key, sealedKey } = archives.newKey(backupId);
    const includes = await findReferencedSections(records.query, tenantId, sections);
    const tables = await describeTables(records, [...sections, ...includes], engine);
    const { id: snapshotId, schemaVersion } = records;
    const header: ArchiveHeader = {
      backupId,
      tenantId,
      engine,
      mode,
      sections,
      includes,
      schemaVersion,
      appVersion,
      createdAt: records.at.toISOString(),
      tables: tables.map(({ archived }) => archived),
      key: sealedKey,
    };
    const copies = tables.map((table) => table.copies);
    const manifest = await archives.write(
      { databaseUrl, snapshotId, header, copies },
      {
        key,
        signal,
        write: upload.write,
        onTable: (index) =>
          progress((90 * index) / tables.length, `reading ${tables[index]?.archived.name ?? ''}`),
      },
    );
    const { rows } = manifest;
    log('info', `Written: ${counted(rows, 'row')} of ${counted(tables.length, 'table')}`, {
      sections,
      includes,
    });
    return { includes, manifest, rows, schemaVersion, appVersion, snapshotAt: records.at };
  }

  return {
    /** Writes the records of one instant to the store as an unfinished upload. */
    snapshot: (id: string, tools: StepTools): Promise<void> =>
      concurrencyLimit(tools, () => snapshot(id, tools)),

    /** Finalizes the upload: the store has an archive from now on. */
    async finalize(id: string, { progress, log }: StepTools): Promise<void> {
      const backup = await findInProgress(id);
      const upload = backup.pending?.upload;
      if (!upload) throw failure('snapshot_missing', 'No snapshot was written for this backup');
      progress(90, 'finalizing');
      await archives.storeOf(backup).finalize(backup.archive, upload);
      const { sizeBytes } = upload;
      await writeUnaudited((on) => patchInProgress(on, id, { sizeBytes }));
      log('info', `The archive has ${sizeBytes} bytes`);
    },

    /** Reads the complete archive from the store and compares it with what was written. */
    verify: (id: string, tools: StepTools): Promise<void> =>
      concurrencyLimit(tools, async () => {
        const { signal, progress, log } = tools;
        const backup = await findInProgress(id);
        progress(93, 'reading the archive again');
        const manifest = await archives.verify(backup, signal);
        if (!backup.manifest || JSON.stringify(manifest) !== JSON.stringify(backup.manifest))
          throw failure(
            'archive_damaged',
            'The archive in the store differs from what was written',
          );
        // Attempts that were killed may have left unfinished uploads.
        await archives.storeOf(backup).abortUploads(backup.archive);
        await writeUnaudited((on, now) => patchInProgress(on, id, { verifiedAt: now }));
        log('info', 'The archive was read again and is complete');
      }),
  };
}

/** The tables of sections with the columns that the archive stores, and how they are read. */
async function describeTables(
  records: Snapshot,
  sections: readonly string[],
  engine: BackupEngine,
): Promise<{ archived: ArchivedTable; copies: string[] }[]> {
  const existing = await records.columns();
  const described: { archived: ArchivedTable; copies: string[] }[] = [];
  for (const table of tablesOf(sections)) {
    const { section, name } = table;
    const columns = (existing.get(name) ?? []).map((column) => column.name);
    const copies = await records.copies(table, columns, engine);
    described.push({ archived: { section, name, columns }, copies });
  }
  return described;
}
