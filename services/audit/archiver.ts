import { setTimeout as sleep } from 'node:timers/promises';
import {
  deleteArchivedEntries,
  findSegment,
  findUnfinished,
  hasCheckpoint,
  readEntries,
} from '../../db/audit/archives.ts';
import { sealEntries } from '../../db/audit/chain.ts';
import type { Commit, WriteUnaudited } from '../../db/core/commit.ts';
import { asRefusal } from '../../db/core/constraints.ts';
import type { Knex } from '../../db/core/knex.ts';
import { MIGRATIONS } from '../../db/migrations/index.ts';
import { AuditArchive } from '../../db/models/AuditArchive.ts';
import { archiveCutoff } from '../../domain/audit/archives.ts';
import { JobFailure, type JobTools } from '../../domain/jobs/jobType.ts';
import { assertDefined } from '../../domain/shared/assert.ts';
import {
  createArchiveWriter,
  rowsOfLines,
  type ArchiveHeader,
} from '../../platform/archive/index.ts';
import type { Ids } from '../../platform/ids.ts';
import { archiveName } from '../../platform/stores/store.ts';
import type { Archives } from '../backups/archives.ts';
import type { ConcurrencyLimit } from '../backups/concurrencyLimit.ts';
import {
  createChainWalk,
  lineOf,
  readSegment,
  SEGMENT_TABLE,
  type AuditSegment,
} from './segmentFile.ts';

export type AuditArchiver = ReturnType<typeof createAuditArchiver>;

type Deps = {
  db: Knex;
  commit: Commit;
  writeUnaudited: WriteUnaudited;
  ids: Ids;
  archives: Archives;
  concurrencyLimit: ConcurrencyLimit;
  appVersion: string;
};

/** The largest number of archives that one job makes. The next job goes on. */
const MAX_ARCHIVES = 100;
/** Entries deleted in one transaction. */
const DELETE_BATCH = 5_000;
const SEAL_BATCH = 1_000;
/** How often to check that a checkpoint is in the chain; other processes may be sealing. */
const SEAL_ATTEMPTS = 100;
const SEAL_WAIT_MS = 200;

const failure = (code: string, message: string, retryable = false) =>
  new JobFailure(code, message, { retryable });

const segmentOf = ({
  firstPosition,
  position,
  previousHash,
  hash,
}: AuditArchive): AuditSegment => ({
  first: firstPosition,
  last: position,
  previousHash: previousHash.toString('hex'),
  hash: hash.toString('hex'),
});

/** The name without its suffix is the id that the key of the archive is bound to. */
const fileIdOf = (id: string, attempt: number): string => `${id}-${attempt}`;

/**
 * Moves old entries of the audit log to archives: write, read back and verify, record a checkpoint in
 * the chain, delete. Each attempt writes a file of its own, so that one that was considered dead cannot
 * touch what a later one has proven. A repeated attempt goes on where the record of the archive is.
 */
export function createAuditArchiver(deps: Deps) {
  const { db, commit, writeUnaudited, ids, archives } = deps;

  /**
   * The archive to write next: the unfinished one, with what its segment is now, or a new one. A
   * segment that is not written yet may end earlier because of a new hold.
   */
  async function claim(tools: JobTools, before: Date): Promise<AuditArchive | undefined> {
    const { tenantId } = tools.caller;
    const known = await findUnfinished(db, tenantId);
    if (known?.status === 'checkpointed') return known;
    const segment = await findSegment(db, tenantId, before);
    if (!segment) return undefined;
    const id = known?.id ?? ids.next('aar');
    const attempts = (known?.attempts ?? 0) + 1;
    const store = archives.targetStore();
    const archive = archiveName(fileIdOf(id, attempts));
    const claimed = await commit(tools.caller, async (work) => {
      const trx = await work.trx();
      const values = {
        ...segment,
        jobId: tools.jobId,
        attempts,
        store,
        archive,
        updatedAt: work.now,
      };
      if (!known) {
        await AuditArchive.query(trx).insert({
          id,
          tenantId,
          status: 'writing',
          sizeBytes: null,
          checkpointAt: null,
          createdAt: work.now,
          ...values,
        });
      } else if (!(await patchAttempt(trx, known, values)))
        throw failure('attempt_superseded', 'Another attempt is archiving these entries', true);
      work.audit(
        'audit.archive',
        { type: 'audit-archive', id },
        { after: auditView(segment, archive) },
      );
      return AuditArchive.query(trx).findById(id).throwIfNotFound();
    });
    // A killed attempt may have left its file.
    if (known) await archives.storeOf(known).remove(known.archive);
    return claimed;
  }

  /** Removes the file of an attempt that has no checkpoint. The next attempt tries again. */
  const removeFile = (archive: AuditArchive): Promise<void> =>
    archives
      .storeOf(archive)
      .remove(archive.archive)
      .catch(() => undefined);

  /** Reads an archive back. Errors: `ArchiveError`, `StoreError`. */
  async function prove(archive: AuditArchive, signal: AbortSignal): Promise<void> {
    const expected = { ...segmentOf(archive), tenantId: archive.tenantId };
    for await (const _ of readSegment(archives.read(archive), expected)) signal.throwIfAborted();
  }

  async function writeAndProve(
    archive: AuditArchive,
    { caller, signal }: JobTools,
  ): Promise<number> {
    return deps.concurrencyLimit({ caller, signal }, async () => {
      try {
        const sizeBytes = await writeSegment(deps, archive, signal);
        await prove(archive, signal);
        return sizeBytes;
      } catch (error) {
        await removeFile(archive);
        throw error;
      }
    });
  }

  /** Records the checkpoint, unless another attempt has taken over. */
  async function recordCheckpoint(
    archive: AuditArchive,
    sizeBytes: number,
    tools: JobTools,
  ): Promise<void> {
    await commit(tools.caller, async (work) => {
      const isOwn = await patchAttempt(await work.trx(), archive, {
        status: 'checkpointed',
        sizeBytes,
        checkpointAt: work.now,
        updatedAt: work.now,
      });
      if (!isOwn) {
        await removeFile(archive);
        throw failure('attempt_superseded', 'Another attempt is archiving these entries', true);
      }
      const subject = { type: 'audit-archive', id: archive.id };
      const after = { tenantId: archive.tenantId, ...auditView(archive, archive.archive) };
      work.audit('audit.checkpoint', subject, { after });
    });
  }

  /** Entries are deleted only when the checkpoint is itself in the chain. */
  async function waitUntilSealed({ id }: AuditArchive, signal: AbortSignal): Promise<void> {
    for (let attempt = 0; attempt < SEAL_ATTEMPTS; attempt++) {
      if (await hasCheckpoint(db, id)) return;
      if ((await sealEntries(db, SEAL_BATCH)).count === 0)
        await sleep(SEAL_WAIT_MS, undefined, { signal });
    }
    throw failure('not_sealed', 'The checkpoint is not in the chain yet', true);
  }

  async function deleteEntries(archive: AuditArchive, { signal }: JobTools): Promise<void> {
    await waitUntilSealed(archive, signal);
    let deleted: number;
    do {
      signal.throwIfAborted();
      deleted = await deleteArchivedEntries(db, archive.id, DELETE_BATCH).catch(
        (error: unknown) => {
          throw asRefusal(error);
        },
      );
    } while (deleted === DELETE_BATCH);
    for (let attempt = 1; attempt < archive.attempts; attempt++)
      await archives.storeOf(archive).remove(archiveName(fileIdOf(archive.id, attempt)));
    await writeUnaudited(async (on, now) =>
      AuditArchive.query(on)
        .patch({ status: 'completed', updatedAt: now })
        .where({ id: archive.id, status: 'checkpointed' }),
    );
  }

  async function archiveOne(archive: AuditArchive, tools: JobTools): Promise<void> {
    if (archive.status === 'writing') {
      const sizeBytes = await writeAndProve(archive, tools);
      await recordCheckpoint(archive, sizeBytes, tools);
    } else {
      // Since an earlier attempt has proven it, the archive may have been lost.
      const { caller, signal } = tools;
      await deps.concurrencyLimit({ caller, signal }, () => prove(archive, signal));
    }
    await deleteEntries(archive, tools);
    const { firstPosition, position } = archive;
    tools.log('info', `The entries ${firstPosition} to ${position} are in ${archive.archive}`, {
      archiveId: archive.id,
    });
  }

  return {
    /**
     * Archives the entries of the job's tenant that are in whole months older than `days`. Returns
     * how many. Errors: `JobFailure`, `StoreError`, `ArchiveError`, `AppError`.
     */
    async archive(days: number, tools: JobTools): Promise<{ archives: string[]; entries: number }> {
      const before = archiveCutoff(tools.startedAt, days);
      const made: string[] = [];
      let entries = 0;
      while (made.length < MAX_ARCHIVES) {
        tools.signal.throwIfAborted();
        const archive = await claim(tools, before);
        if (!archive) break;
        await archiveOne(archive, tools);
        made.push(archive.id);
        entries += archive.position - archive.firstPosition + 1;
      }
      if (made.length === 0) tools.log('info', 'There is nothing to archive');
      return { archives: made, entries };
    },
  };
}

type Values = Partial<AuditArchive>;

/** Changes an archive that this attempt still writes. Returns false if another one has taken over. */
const patchAttempt = async (
  trx: Parameters<typeof AuditArchive.query>[0],
  { id, attempts }: Pick<AuditArchive, 'id' | 'attempts'>,
  values: Values,
): Promise<boolean> =>
  (await AuditArchive.query(trx).patch(values).where({ id, attempts, status: 'writing' })) > 0;

const auditView = (
  { firstPosition, position, hash }: Pick<AuditArchive, 'firstPosition' | 'position' | 'hash'>,
  archive: string,
) => ({ firstPosition, position, hash: hash.toString('hex'), archive });

/** Writes the file of an archive. Returns its size. Error: `audit_chain_broken`. */
async function writeSegment(
  { db, archives, appVersion }: Deps,
  archive: AuditArchive,
  signal: AbortSignal,
): Promise<number> {
  const { tenantId } = archive;
  const fileId = fileIdOf(archive.id, archive.attempts);
  const { key, sealedKey } = archives.newKey(fileId);
  const header: ArchiveHeader = {
    backupId: fileId,
    tenantId,
    engine: 'portable',
    mode: 'partial',
    sections: ['audit'],
    includes: [],
    schemaVersion: assertDefined(Object.keys(MIGRATIONS).at(-1), 'migration'),
    appVersion,
    createdAt: archive.createdAt.toISOString(),
    tables: [SEGMENT_TABLE],
    auditSegment: segmentOf(archive),
    key: sealedKey,
  };
  const store = archives.storeOf(archive);
  const upload = await store.startUpload(archive.archive);
  try {
    const out = await createArchiveWriter(header, key, upload);
    await out.rows([rowsOfLines(chainLines(db, archive, signal))]);
    await out.finish();
    const pending = await upload.finish();
    await store.finalize(archive.archive, pending);
    return pending.sizeBytes;
  } catch (error) {
    await upload.abort().catch(() => undefined);
    throw error;
  }
}

/** The entries of an archive as lines, while their chain is intact. Error: `audit_chain_broken`. */
async function* chainLines(
  db: Knex,
  archive: AuditArchive,
  signal: AbortSignal,
): AsyncGenerator<Buffer> {
  const walk = createChainWalk(segmentOf(archive));
  for await (const batch of readEntries(db, archive.tenantId, archive)) {
    signal.throwIfAborted();
    for (const entry of batch)
      if (!walk.accepts(entry))
        throw failure(
          'audit_chain_broken',
          `The chain is broken at position ${walk.last().position + 1}: nothing is archived`,
        );
    yield Buffer.from(batch.map(lineOf).join(''));
  }
}
