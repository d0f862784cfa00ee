import { tryLockUntilCommit } from '../core/advisoryLocks.ts';
import type { Knex } from '../core/knex.ts';
import { inPieces } from '../core/prepared.ts';
import { chainHash, GENESIS } from '../../domain/audit/chainHash.ts';
import { assertDefined } from '../../domain/shared/assert.ts';
import { findCheckpoint } from './archives.ts';
import { CONTENT_SQL, ENTRIES_PER_PIECE, readContents, type ChainEntry } from './content.ts';

type ChainLink = { position: number; hash: Buffer };

/** How many entries were sealed, 0 also when another process is sealing, and whether there may be more. */
type Sealed = { count: number; hasMore: boolean };

/**
 * Seals up to `limit` unsealed entries, oldest first: each gets the next position in its tenant's
 * chain and a hash that covers the previous entry. Writers of new entries never wait for this.
 */
export async function sealEntries(db: Knex, limit: number): Promise<Sealed> {
  return db.transaction(async (trx) => {
    const none = { count: 0, hasMore: false };
    if (!(await tryLockUntilCommit(trx, 'auditSealing'))) return none;
    const { entries: rows, isCut } = await readContents(
      trx,
      `SELECT id, tenant_id, ${CONTENT_SQL} FROM audit_entries
       WHERE position IS NULL ORDER BY id LIMIT ?`,
      [limit],
    );
    if (rows.length === 0) return none;
    const heads = await readHeads(trx, rows);
    const sealed = rows.map((entry) => {
      const head = heads.get(entry.tenant_id) ?? { position: 0, hash: GENESIS };
      const position = head.position + 1;
      const next = { position, hash: chainHash(head.hash, position, entry.content) };
      heads.set(entry.tenant_id, next);
      return { id: entry.id, ...next };
    });
    await trx.raw(
      `UPDATE audit_entries AS a SET position = s.position, hash = s.hash
       FROM unnest(?::text[], ?::bigint[], ?::bytea[]) AS s (id, position, hash) WHERE a.id = s.id`,
      [sealed.map((s) => s.id), sealed.map((s) => s.position), sealed.map((s) => s.hash)],
    );
    await trx.raw(
      `INSERT INTO audit_heads (tenant_id, position, hash)
       SELECT * FROM unnest(?::text[], ?::bigint[], ?::bytea[])
       ON CONFLICT (tenant_id) DO UPDATE SET position = excluded.position, hash = excluded.hash`,
      [
        [...heads.keys()],
        [...heads.values()].map((h) => h.position),
        [...heads.values()].map((h) => h.hash),
      ],
    );
    return { count: rows.length, hasMore: isCut || rows.length === limit };
  });
}

async function readHeads(trx: Knex.Transaction, rows: readonly ChainEntry[]) {
  const tenants = [...new Set(rows.map((row) => row.tenant_id))];
  const heads: { tenant_id: string; position: number; hash: Buffer }[] = await trx(
    'audit_heads',
  ).whereIn('tenant_id', tenants);
  return new Map(
    heads.map((head) => [head.tenant_id, { position: head.position, hash: head.hash }]),
  );
}

/**
 * Result of verifying a chain. `from`: the position of the checkpoint at which it begins, 0 without
 * one; entries up to there are archived. `checked`: valid entries after it; `unsealed`: entries not in the chain yet;
 * `broken`: the first invalid position, with the entry's id unless the entry is missing.
 */
export type ChainCheck = {
  from: number;
  checked: number;
  unsealed: number;
  broken: { position: number; id: string | null } | null;
};

/** Ids of the tenants that have a chain or unsealed entries, sorted. */
export async function findAuditTenants(db: Knex): Promise<string[]> {
  const { rows }: { rows: { tenant_id: string }[] } = await db.raw(
    `SELECT tenant_id FROM audit_heads
     UNION SELECT tenant_id FROM audit_entries WHERE position IS NULL
     ORDER BY tenant_id`,
  );
  return rows.map((row) => row.tenant_id);
}

/** Entries read per query during verification. */
const CHECK_BATCH = 1_000;

/** Verifies the chain of a tenant from its checkpoint on, in one snapshot. */
export const verifyChain = (db: Knex, tenantId: string): Promise<ChainCheck> =>
  db.transaction((trx) => checkChain(trx, tenantId), {
    isolationLevel: 'repeatable read',
    readOnly: true,
  });

async function countUnsealed(trx: Knex.Transaction, tenantId: string): Promise<number> {
  const rows: { count: number }[] = await trx('audit_entries')
    .where({ tenant_id: tenantId, position: null })
    .count({ count: '*' });
  return assertDefined(rows[0], 'row of count(*)').count;
}

/** The position of the last sealed entry of a tenant; 0 without one. */
export async function readHeadPosition(db: Knex, tenantId: string): Promise<number> {
  const head = await db('audit_heads')
    .where({ tenant_id: tenantId })
    .first<{ position: number } | undefined>('position');
  return head?.position ?? 0;
}

async function checkChain(trx: Knex.Transaction, tenantId: string): Promise<ChainCheck> {
  const head = await readHeadPosition(trx, tenantId);
  const unsealed = await countUnsealed(trx, tenantId);
  const checkpoint = await findCheckpoint(trx, tenantId);
  const from = checkpoint?.position ?? 0;
  const result = (last: number, broken: ChainCheck['broken']): ChainCheck => ({
    from,
    checked: last - from,
    unsealed,
    broken,
  });
  // The chain says itself that its beginning was archived.
  if (checkpoint && !checkpoint.isInChain) return result(from, { position: from, id: null });
  let last: ChainLink = { position: from, hash: checkpoint?.hash ?? GENESIS };
  for (;;) {
    let found = 0;
    const entries = inPieces<ChainEntry>(
      trx,
      `SELECT id, position, hash, ${CONTENT_SQL} FROM audit_entries
       WHERE tenant_id = ? AND position > ? ORDER BY position LIMIT ?`,
      [tenantId, last.position, CHECK_BATCH],
      { maxRows: ENTRIES_PER_PIECE },
    );
    for await (const piece of entries) {
      found += piece.length;
      for (const entry of piece) {
        const position = last.position + 1;
        const hash = chainHash(last.hash, position, entry.content);
        if (entry.position !== position) return result(last.position, { position, id: null });
        if (!hash.equals(entry.hash)) return result(last.position, { position, id: entry.id });
        last = { position, hash };
      }
    }
    if (found < CHECK_BATCH) break;
  }
  // Deleting the last entries leaves valid links, but the head has the position of the last one.
  const isIntact = head === last.position;
  return result(last.position, isIntact ? null : { position: last.position + 1, id: null });
}
