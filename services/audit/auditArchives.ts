import { findArchives } from '../../db/audit/archives.ts';
import { whereDefined } from '../../db/core/keyset.ts';
import type { Knex } from '../../db/core/knex.ts';
import { readList } from '../../db/core/lists.ts';
import { whereInScope } from '../../db/core/scopeSql.ts';
import { withJobMarks } from '../../db/jobs/purgedJobs.ts';
import { AuditArchive } from '../../db/models/AuditArchive.ts';
import type { AuditArchiveData } from '../../domain/audit/archives.ts';
import { GENESIS } from '../../domain/audit/chainHash.ts';
import type { JobMark } from '../../domain/jobs/records.ts';
import type { Caller } from '../../domain/shared/caller.ts';
import type { ListAnswer, ListRequest } from '../../domain/shared/lists.ts';
import { ArchiveError } from '../../platform/archive/index.ts';
import { StoreError } from '../../platform/stores/store.ts';
import type { Access } from '../access/access.ts';
import type { Archives } from '../backups/archives.ts';
import { readSegment } from './segmentFile.ts';

export type AuditArchives = ReturnType<typeof createAuditArchives>;

/** An archive, and whether the job that made it is purged. */
type MarkedArchive = AuditArchiveData & JobMark;

/** The outcome of verifying one archive: null when it is intact, else what is wrong. */
export type ArchiveCheck = { archive: AuditArchiveData; problem: string | null };

const BATCH = 100;

/** The columns of fields that do not have the name of the field. */
const COLUMNS = { since: 'first_at', until: 'last_at' };

/** Reads and verifies what was archived of the audit log. */
export function createAuditArchives({
  db,
  access,
  archives,
}: {
  db: Knex;
  access: Access;
  archives: Archives;
}) {
  function visible(caller: Caller, tenantId: string | undefined) {
    const query = AuditArchive.query(db).whereNotNull('checkpoint_at');
    whereInScope(query, access.scope(caller, 'audit:read'));
    whereDefined(query, { tenant_id: tenantId });
    return query;
  }

  /** Why an archive is not the part of the chain after `previousHash`; null when it is. */
  async function problemOf(archive: AuditArchive, previous: AuditArchive | undefined) {
    const { tenantId, firstPosition, position, previousHash, hash } = archive;
    if (
      firstPosition !== (previous?.position ?? 0) + 1 ||
      !previousHash.equals(previous?.hash ?? GENESIS)
    )
      return 'it does not follow the archive before it';
    const segment = {
      tenantId,
      first: firstPosition,
      last: position,
      previousHash: previousHash.toString('hex'),
      hash: hash.toString('hex'),
    };
    try {
      for await (const _ of readSegment(archives.read(archive), segment));
      return null;
    } catch (error) {
      if (error instanceof ArchiveError || error instanceof StoreError) return error.message;
      throw error;
    }
  }

  return {
    /** The archives of the audit logs that the caller may read. */
    async list(caller: Caller, request: ListRequest): Promise<ListAnswer<MarkedArchive>> {
      const source = { db, visible: () => visible(caller, undefined), columns: COLUMNS };
      const answer = await readList(source, request);
      return { ...answer, items: await withJobMarks(db, answer.items) };
    },

    /** The newest archive of those that the caller may read. */
    async newest(caller: Caller, tenantId: string | undefined): Promise<MarkedArchive | undefined> {
      const found = await visible(caller, tenantId).orderBy('id', 'desc').limit(1);
      return (await withJobMarks(db, found))[0];
    },

    /** Reads every archive of a tenant and verifies it against the chain, oldest first. */
    async *verify(tenantId: string): AsyncGenerator<ArchiveCheck> {
      let previous: AuditArchive | undefined;
      for (;;) {
        const batch = await findArchives(db, tenantId, previous?.position ?? 0, BATCH);
        for (const archive of batch) {
          yield { archive, problem: await problemOf(archive, previous) };
          previous = archive;
        }
        if (batch.length < BATCH) return;
      }
    },
  };
}
