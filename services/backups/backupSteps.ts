import { randomUUID } from 'node:crypto';
import { referredSections, tablesOf } from '../../db/backups/catalog.ts';
import { extentAt, withSnapshot, type Snapshot } from '../../db/backups/snapshot.ts';
import type { BackedUpTable } from '../../db/backups/tables.ts';
import type { Note } from '../../db/commit.ts';
import type { Knex } from '../../db/core/knex.ts';
import { Backup } from '../../db/models/Backup.ts';
import { isOpen, type Section } from '../../domain/backups.ts';
import { JobFailure } from '../../domain/jobType.ts';
import {
  createArchiveWriter,
  type ArchiveHeader,
  type ArchiveManifest,
} from '../../platform/archive/index.ts';
import type { ArchiveUpload, Pending } from '../../platform/stores/store.ts';
import type { StepTools } from '../jobSteps.ts';
import type { Archives } from './archives.ts';
import type { Room } from './room.ts';

export type BackupSteps = ReturnType<typeof createBackupSteps>;

type Deps = {
  db: Knex;
  databaseUrl: string;
  note: Note;
  archives: Archives;
  room: Room;
  appVersion: string;
};

/** What the workflow of a backup does. Every step may be repeated. */
export function createBackupSteps({ db, databaseUrl, note, archives, room, appVersion }: Deps) {
  const find = (id: string) => Backup.query(db).findById(id).throwIfNotFound();

  /** The backup, while it is being made. Error: `JobFailure` once it has an end. */
  async function open(id: string): Promise<Backup> {
    const backup = await find(id);
    if (!isOpen(backup))
      throw new JobFailure('backup_ended', `The backup has ended: ${backup.status}`, {
        retryable: false,
      });
    return backup;
  }

  /** Only the attempt that has begun last may say what it wrote: one that was taken for dead writes elsewhere. */
  const noteWritten = (id: string, attempt: string, written: Partial<Backup>): Promise<number> =>
    note(async (on, now) =>
      Backup.query(on)
        .patch({ ...written, updatedAt: now })
        .where({ id })
        .whereRaw(`pending ->> 'attempt' = ?`, [attempt]),
    );

  async function headerOf(
    backup: Backup,
    snapshot: Snapshot,
    carried: ArchiveHeader['key'],
    of: { includes: Section[]; tables: readonly BackedUpTable[] },
  ): Promise<ArchiveHeader> {
    const tables: ArchiveHeader['tables'] = [];
    for (const table of of.tables)
      tables.push({
        section: table.section,
        name: table.name,
        columns: await snapshot.columns(table),
      });
    const { id: backupId, tenantId, engine, mode, sections } = backup;
    return {
      backupId,
      tenantId,
      engine,
      mode,
      sections,
      includes: of.includes,
      schemaVersion: snapshot.schemaVersion,
      appVersion,
      createdAt: snapshot.at.toISOString(),
      tables,
      key: carried,
    };
  }

  async function write(
    backup: Backup,
    snapshot: Snapshot,
    upload: ArchiveUpload,
    { progress, log, signal }: StepTools,
  ): Promise<Partial<Backup>> {
    const { key, carried } = archives.newKey(backup.id);
    const includes = await referredSections(snapshot.ask, backup.tenantId, backup.sections);
    const tables = tablesOf([...backup.sections, ...includes]);
    const header = await headerOf(backup, snapshot, carried, { includes, tables });
    const writer = await createArchiveWriter(header, key, upload);
    for (const [at, table] of tables.entries()) {
      signal.throwIfAborted();
      progress((90 * at) / tables.length, `reading ${table.name}`);
      await writer.rows(snapshot.rows(table, header.tables[at]?.columns ?? [], backup.engine));
    }
    const manifest = await writer.finish();
    log('info', `${manifest.rows} rows of ${tables.length} tables are written`, {
      sections: backup.sections,
      includes,
    });
    return {
      includes,
      manifest,
      rows: manifest.rows,
      schemaVersion: snapshot.schemaVersion,
      appVersion,
      snapshotAt: snapshot.at,
    };
  }

  /** Writes all rows of one moment to the store. It is no archive yet. */
  async function snapshot(id: string, tools: StepTools): Promise<void> {
    const backup = await open(id);
    const attempt = randomUUID();
    const begun: Partial<Backup> = { status: 'running', pending: { attempt, upload: null } };
    const mine = await note(async (on, now) =>
      Backup.query(on)
        .patch({ ...begun, updatedAt: now, checkAt: now })
        .where({ id, size_bytes: null })
        .whereIn('status', ['queued', 'running']),
    );
    if (mine === 0)
      throw new JobFailure('superseded', 'Another attempt has made this backup', {
        retryable: false,
      });
    const store = archives.storeOf(backup);
    await withSnapshot(databaseUrl, extentAt(backup.tenantId), tools.signal, async (moment) => {
      const upload = await store.begin(backup.archive);
      let pending: Pending;
      let written: Partial<Backup>;
      try {
        written = await write(backup, moment, upload, tools);
        pending = await upload.finish();
      } catch (error) {
        await upload.abort();
        throw error;
      }
      if (
        (await noteWritten(id, attempt, { ...written, pending: { attempt, upload: pending } })) ===
        0
      ) {
        await upload.abort();
        throw new JobFailure('superseded', 'Another attempt makes this backup', {
          retryable: false,
        });
      }
    });
  }

  return {
    snapshot: (id: string, tools: StepTools): Promise<void> =>
      room(tools.signal, () => snapshot(id, tools)),

    /** Makes an archive of what was written. */
    async seal(id: string, { progress, log }: StepTools): Promise<void> {
      const backup = await open(id);
      const upload = backup.pending?.upload;
      if (!upload)
        throw new JobFailure('nothing_written', 'Nothing was written for this backup', {
          retryable: false,
        });
      progress(90, 'sealing');
      await archives.storeOf(backup).seal(backup.archive, upload);
      await note(async (on) =>
        Backup.query(on)
          .patch({ sizeBytes: upload.sizeBytes })
          .where({ id })
          .whereIn('status', ['queued', 'running']),
      );
      log('info', `The archive has ${upload.sizeBytes} bytes`);
    },

    /** Reads the archive from the store, all of it, and compares it with what was written. */
    verify: (id: string, { signal, progress, log }: StepTools): Promise<void> =>
      room(signal, async () => {
        const backup = await open(id);
        progress(93, 'reading the archive again');
        let manifest: ArchiveManifest | undefined;
        for await (const part of archives.read(backup)) {
          signal.throwIfAborted();
          if (part.kind === 'manifest') ({ manifest } = part);
        }
        if (!backup.manifest || JSON.stringify(manifest) !== JSON.stringify(backup.manifest)) {
          throw new JobFailure(
            'archive_damaged',
            'The archive in the store is not what was written',
            { retryable: false },
          );
        }
        // What attempts that were killed have left.
        await archives.storeOf(backup).clear(backup.archive);
        await note(async (on, now) =>
          Backup.query(on)
            .patch({ verifiedAt: now })
            .where({ id })
            .whereIn('status', ['queued', 'running']),
        );
        log('info', 'The archive was read again, and is whole');
      }),
  };
}
