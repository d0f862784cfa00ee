import { MAX_ARCHIVED_ENTRIES } from '../../domain/audit/archives.ts';
import { GENESIS } from '../../domain/audit/chainHash.ts';
import type { Knex } from '../core/knex.ts';
import { AuditArchive } from '../models/AuditArchive.ts';
import { notHeld } from '../retention/holds.ts';
import { CONTENT_SQL, readContents } from './content.ts';

/** Where the chain of a tenant begins: the end of its newest archive with a checkpoint. */
export type Checkpoint = {
  position: number;
  hash: Buffer;
  /** True when an entry of the chain after it says so. */
  isInChain: boolean;
};

/**
 * Undefined without one. An entry that is not sealed yet counts for nothing: until it is, no entry is
 * deleted.
 */
export async function findCheckpoint(db: Knex, tenantId: string): Promise<Checkpoint | undefined> {
  const { rows } = await db.raw<{ rows: Checkpoint[] }>(
    `SELECT a.position, a.hash, has_audit_checkpoint(a) AS "isInChain" FROM audit_archives AS a
     WHERE a.tenant_id = ? AND a.checkpoint_at IS NOT NULL
       AND (a.status = 'completed' OR has_audit_checkpoint(a)) ORDER BY a.position DESC LIMIT 1`,
    [tenantId],
  );
  return rows[0];
}

/** True when the checkpoint of an archive is in the chain. */
export async function hasCheckpoint(db: Knex, id: string): Promise<boolean> {
  const { rows } = await db.raw<{ rows: { found: boolean }[] }>(
    'SELECT has_audit_checkpoint(a) AS found FROM audit_archives AS a WHERE a.id = ?',
    [id],
  );
  return rows[0]?.found === true;
}

/** The archive of a tenant that an earlier job has not finished. */
export const findUnfinished = async (
  db: Knex,
  tenantId: string,
): Promise<AuditArchive | undefined> =>
  AuditArchive.query(db).where({ tenant_id: tenantId }).whereNot({ status: 'completed' }).first();

/** A part of a chain: its first and last position, and what it links. */
export type Segment = Pick<
  AuditArchive,
  'firstPosition' | 'position' | 'previousHash' | 'hash' | 'firstAt' | 'lastAt' | 'lastId'
>;

/**
 * The next entries of a tenant to archive: those after the last checkpoint, up to the first that was
 * written at `before` or later or is held. Undefined when there are none.
 */
export async function findSegment(
  db: Knex,
  tenantId: string,
  before: Date,
): Promise<Segment | undefined> {
  const { position: start = 0, hash: previousHash = GENESIS } =
    (await findCheckpoint(db, tenantId)) ?? {};
  type Bounds = Omit<Segment, 'previousHash' | 'firstPosition' | 'position'> & {
    firstPosition: number | null;
    position: number | null;
  };
  const { rows } = await db.raw<{ rows: Bounds[] }>(
    `WITH next AS MATERIALIZED (
       SELECT e.id, e.tenant_id, e.actor_id, e.subject_type, e.subject_id, e.position, e.at
       FROM audit_entries AS e WHERE e.tenant_id = :tenantId
         AND e.position > :start AND e.position <= :last
     ), kept AS (
       SELECT min(n.position) AS position FROM next AS n
       WHERE n.at >= :before OR NOT (${notHeld('audit_entries', 'n')})
     ), taken AS (
       SELECT min(n.position) AS first_position, max(n.position) AS position, min(n.at) AS first_at,
         max(n.at) AS last_at, max(n.id) AS last_id
       FROM next AS n, kept AS k WHERE k.position IS NULL OR n.position < k.position
     )
     SELECT t.first_position AS "firstPosition", t.position, t.first_at AS "firstAt",
       t.last_at AS "lastAt", t.last_id AS "lastId",
       (SELECT e.hash FROM audit_entries AS e
        WHERE e.tenant_id = :tenantId AND e.position = t.position) AS hash
     FROM taken AS t`,
    { tenantId, start, before, last: start + MAX_ARCHIVED_ENTRIES },
  );
  const { firstPosition = null, position = null, ...rest } = rows[0] ?? ({} as Partial<Bounds>);
  if (firstPosition === null || position === null) return undefined;
  return {
    ...(rest as Omit<Bounds, 'firstPosition' | 'position'>),
    firstPosition,
    position,
    previousHash,
  };
}

/** A sealed entry with the text that its hash covers. */
export type SealedEntry = { position: number; hash: Buffer; content: string };

const READ_BATCH = 1_000;

/** The entries of a segment in the order of the chain, few of large ones together. */
export async function* readEntries(
  db: Knex,
  tenantId: string,
  { firstPosition, position }: Pick<Segment, 'firstPosition' | 'position'>,
): AsyncGenerator<SealedEntry[]> {
  for (let from = firstPosition; from <= position;) {
    const to = Math.min(position, from + READ_BATCH - 1);
    const { entries, isCut } = await db.transaction((trx) =>
      readContents(
        trx,
        `SELECT position, hash, ${CONTENT_SQL} FROM audit_entries
         WHERE tenant_id = ? AND position BETWEEN ? AND ? ORDER BY position`,
        [tenantId, from, to],
      ),
    );
    yield entries;
    from = 1 + (isCut ? (entries.at(-1)?.position ?? to) : to);
  }
}

/**
 * Deletes entries of an archive up to its checkpoint, at most `limit`. Returns their number. The only
 * way to delete entries. Errors: SQLSTATE 42501 without a matching checkpoint, HF004 for a legal hold.
 */
export async function deleteArchivedEntries(
  db: Knex,
  archiveId: string,
  limit: number,
): Promise<number> {
  const { rows } = await db.raw<{ rows: { deleted: number }[] }>(
    'SELECT delete_archived_audit_entries(?, ?) AS deleted',
    [archiveId, limit],
  );
  return rows[0]?.deleted ?? 0;
}

/** The archives of a tenant with a checkpoint, in the order of the chain, after a position. */
export const findArchives = async (
  db: Knex,
  tenantId: string,
  after: number,
  limit: number,
): Promise<AuditArchive[]> =>
  AuditArchive.query(db)
    .where({ tenant_id: tenantId })
    .whereNotNull('checkpoint_at')
    .where('position', '>', after)
    .orderBy('position')
    .limit(limit);

/** When the newest entry of a tenant that is archived was written; null without archives. */
export async function findArchivedUntil(db: Knex, tenantId: string): Promise<Date | null> {
  const newest = await AuditArchive.query(db)
    .where({ tenant_id: tenantId })
    .whereNotNull('checkpoint_at')
    .orderBy('position', 'desc')
    .first();
  return newest?.lastAt ?? null;
}
