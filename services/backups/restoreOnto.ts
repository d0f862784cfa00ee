import { findDifferences, askIn, planRestore } from '../../db/backups/differences.ts';
import { applyDifferences, lockForSwap } from '../../db/backups/swap.ts';
import {
  bringUp,
  dropScratch,
  loadArchive,
  type Loading,
  type Migrations,
} from '../../db/backups/scratch.ts';
import { withSession } from '../../db/backups/session.ts';
import { TABLES } from '../../db/backups/tables.ts';
import type { Commit } from '../../db/commit.ts';
import type { Knex } from '../../db/core/knex.ts';
import { Backup } from '../../db/models/Backup.ts';
import { SECTIONS, isSection } from '../../domain/backups.ts';
import { systemCaller } from '../../domain/shared/caller.ts';
import { PLATFORM } from '../../domain/access/scope.ts';
import type { ArchiveHeader, ArchiveManifest, ArchivePart } from '../../platform/archive/index.ts';
import { archiveName, type ArchiveStore, type StoredArchive } from '../../platform/stores/store.ts';
import type { DispatchTask } from '../../temporal/contracts.ts';
import { resumeSchedules } from './resumeSchedules.ts';
import { backupSubject, backupView } from './trail.ts';

type Deps = { db: Knex; databaseUrl: string; commit: Commit<DispatchTask> };

/** Rows with which a schema begins. */
const SEEDS: Readonly<Record<string, string>> = { tenants: PLATFORM, providers: 'local' };

/** Tables that hold more than a new installation has. */
async function filled(db: Knex): Promise<string[]> {
  const names: string[] = [];
  for (const { name, key } of TABLES) {
    const { rows } = await db.raw<{ rows: unknown[] }>(
      'SELECT FROM ?? WHERE ?? IS DISTINCT FROM ? LIMIT 1',
      [name, key[0] ?? 'id', SEEDS[name] ?? null],
    );
    if (rows.length > 0) names.push(name);
  }
  return names;
}

export type Onto = { header: ArchiveHeader; manifest: ArchiveManifest };

/**
 * Restores an archive onto a database that has the schema and no records: for the day on which the server is gone. All or nothing.
 * Errors: an `Error` when there are records, `ArchiveError`, `SchemaNewer`.
 */
export async function restoreOnto(
  { db, databaseUrl }: Omit<Deps, 'commit'>,
  parts: AsyncIterable<ArchivePart>,
  options: { migrations?: Migrations; signal?: AbortSignal } = {},
): Promise<Onto> {
  const there = await filled(db);
  if (there.length > 0)
    throw new Error(
      `The database is not empty: there are rows in ${there.join(', ')}. Restore into a running installation with POST /api/backup/restore.`,
    );
  const schema = 'restore_command';
  try {
    const onto = await withSession(
      databaseUrl,
      options.signal ?? new AbortController().signal,
      async (session) => {
        const loading: Loading = {
          db,
          session,
          schema,
          ...(options.migrations && { migrations: options.migrations }),
        };
        const loaded = await loadArchive(parts, loading);
        if (loaded.header.tenantId !== PLATFORM)
          throw new Error(
            `The archive is of tenant ${loaded.header.tenantId} alone: restore it into a running installation with POST /api/backup/restore.`,
          );
        await bringUp(loading, loaded);
        return loaded;
      },
    );
    await db.transaction(async (trx) => {
      const ask = askIn(trx);
      const plan = await planRestore(ask, {
        schema,
        extent: { tenantId: null },
        sections: SECTIONS,
        archived: onto.header.tables,
      });
      await lockForSwap(trx, plan, 10_000);
      if ((await filled(trx)).length > 0)
        throw new Error('Records came to be while the archive was loaded.');
      await findDifferences(ask, plan);
      const { schedules } = await applyDifferences(trx, plan);
      await resumeSchedules(trx, schedules, new Date());
    });
    return onto;
  } finally {
    await dropScratch(db, schema);
  }
}

/** Makes records of archives that a store has and the database does not know. Returns how many. */
export async function adopt(
  { db, commit }: Pick<Deps, 'db' | 'commit'>,
  store: Pick<ArchiveStore, 'kind' | 'list'>,
  headerOf: (archive: StoredArchive) => Promise<ArchiveHeader | undefined>,
): Promise<number> {
  let adopted = 0;
  for await (const archive of store.list()) {
    const header = await headerOf(archive);
    // A copy under another name is not the archive of that backup.
    if (
      !header ||
      archive.name !== archiveName(header.backupId) ||
      (await Backup.query(db).findById(header.backupId))
    )
      continue;
    const at = new Date(header.createdAt);
    await commit(systemCaller(header.tenantId, 'adopt'), (work) => {
      const backup = work.insert(Backup, {
        id: header.backupId,
        tenantId: header.tenantId,
        mode: header.mode,
        sections: header.sections.filter(isSection),
        includes: header.includes.filter(isSection),
        engine: header.engine,
        label: 'found in the store',
        keep: {},
        status: 'completed',
        jobId: null,
        store: store.kind,
        archive: archive.name,
        pending: null,
        sizeBytes: archive.sizeBytes,
        rows: null,
        manifest: null,
        schemaVersion: header.schemaVersion,
        appVersion: header.appVersion,
        snapshotAt: at,
        verifiedAt: null,
        provenAt: null,
        error: null,
        createdBy: 'system:adopt',
        createdAt: at,
        updatedAt: work.now,
        finishedAt: at,
        deletedAt: null,
        checkAt: work.now,
        version: 1,
      });
      work.audit('backup.adopt', backupSubject(backup), { after: backupView(backup) });
    });
    adopted += 1;
  }
  return adopted;
}
