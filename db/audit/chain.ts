import { createHash } from 'node:crypto';
import type { Knex } from '../core/knex.ts';

/** Names the lock under which entries are sealed: one process at a time, whatever their number. */
const SEAL_LOCK = 7_203_115;

/** What precedes the first entry of a tenant. */
const GENESIS: Buffer = Buffer.alloc(32);

/** The entry as it is hashed: every column but the seal, JSON as the very text that is stored. */
const CONTENT = `json_build_array(id, tenant_id, actor_id, via, action, outcome, subject_type, subject_id,
  before::text, after::text, request_id, address, extract(epoch FROM at)::text)::text AS content`;

type Link = { position: number; hash: Buffer };
type Entry = { id: string; tenant_id: string; content: string; position: number; hash: Buffer };

/** SHA-256 over the hash of the entry before, the position and the content. */
const link = (previous: Buffer, position: number, content: string): Buffer =>
  createHash('sha256').update(previous).update(`\n${position}\n`).update(content).digest();

/**
 * Seals entries that have no place in their tenant's chain yet, oldest first, at most `limit`. Writers never
 * wait for this. Returns how many were sealed; 0 also when another process is at it.
 */
export async function sealAudit(db: Knex, limit: number): Promise<number> {
  return db.transaction(async (trx) => {
    const lock = await trx.raw<{ rows: { got: boolean }[] }>(
      'SELECT pg_try_advisory_xact_lock(?) AS got',
      [SEAL_LOCK],
    );
    if (!lock.rows[0]?.got) return 0;
    const { rows } = await trx.raw<{ rows: Entry[] }>(
      `SELECT id, tenant_id, ${CONTENT} FROM audit_entries WHERE position IS NULL ORDER BY id LIMIT ?`,
      [limit],
    );
    if (rows.length === 0) return 0;
    const heads = await readHeads(trx, rows);
    const sealed = rows.map((entry) => {
      const head = heads.get(entry.tenant_id) ?? { position: 0, hash: GENESIS };
      const position = head.position + 1;
      const next = { position, hash: link(head.hash, position, entry.content) };
      heads.set(entry.tenant_id, next);
      return { id: entry.id, ...next };
    });
    await trx.raw(
      `UPDATE audit_entries AS a SET position = s.position, hash = s.hash
       FROM unnest(?::text[], ?::bigint[], ?::bytea[]) AS s (id, position, hash) WHERE a.id = s.id`,
      [sealed.map((s) => s.id), sealed.map((s) => s.position), sealed.map((s) => s.hash)],
    );
    await trx.raw(
      `INSERT INTO audit_heads (tenant_id, position, hash) SELECT * FROM unnest(?::text[], ?::bigint[], ?::bytea[])
       ON CONFLICT (tenant_id) DO UPDATE SET position = excluded.position, hash = excluded.hash`,
      [
        [...heads.keys()],
        [...heads.values()].map((h) => h.position),
        [...heads.values()].map((h) => h.hash),
      ],
    );
    return rows.length;
  });
}

async function readHeads(trx: Knex.Transaction, rows: readonly Entry[]) {
  const tenants = [...new Set(rows.map((row) => row.tenant_id))];
  const heads: { tenant_id: string; position: number; hash: Buffer }[] = await trx(
    'audit_heads',
  ).whereIn('tenant_id', tenants);
  return new Map(
    heads.map((head) => [head.tenant_id, { position: head.position, hash: head.hash }]),
  );
}

export type ChainCheck = {
  checked: number;
  unsealed: number;
  broken: { position: number; id: string | null } | null;
};

/** Every tenant with a chain, or with entries that are not sealed yet. */
export async function auditTenants(db: Knex): Promise<string[]> {
  const { rows }: { rows: { tenant_id: string }[] } = await db.raw(
    `SELECT tenant_id FROM audit_heads UNION SELECT tenant_id FROM audit_entries WHERE position IS NULL ORDER BY tenant_id`,
  );
  return rows.map((row) => row.tenant_id);
}

const CHECK_BATCH = 1_000;

/** Reads a tenant's whole chain, as it is at one moment, and names the first link that does not hold. */
export const verifyAudit = (db: Knex, tenantId: string): Promise<ChainCheck> =>
  db.transaction((trx) => checkChain(trx, tenantId), {
    isolationLevel: 'repeatable read',
    readOnly: true,
  });

async function checkChain(trx: Knex.Transaction, tenantId: string): Promise<ChainCheck> {
  const head = await trx('audit_heads')
    .where({ tenant_id: tenantId })
    .first<{ position: number } | undefined>();
  const unsealedRows = await trx('audit_entries')
    .where({ tenant_id: tenantId, position: null })
    .count();
  const unsealed = (unsealedRows[0] as { count: number } | undefined)?.count ?? 0;
  let last: Link = { position: 0, hash: GENESIS };
  for (;;) {
    const { rows } = await trx.raw<{ rows: Entry[] }>(
      `SELECT id, position, hash, ${CONTENT} FROM audit_entries
       WHERE tenant_id = ? AND position > ? ORDER BY position LIMIT ?`,
      [tenantId, last.position, CHECK_BATCH],
    );
    for (const entry of rows) {
      const position = last.position + 1;
      const hash = link(last.hash, position, entry.content);
      if (entry.position !== position)
        return { checked: last.position, unsealed, broken: { position, id: null } };
      if (!hash.equals(entry.hash))
        return { checked: last.position, unsealed, broken: { position, id: entry.id } };
      last = { position, hash };
    }
    if (rows.length < CHECK_BATCH) break;
  }
  // An end that was cut off leaves links that hold; the head knows how many there were.
  const whole = (head?.position ?? 0) === last.position;
  return {
    checked: last.position,
    unsealed,
    broken: whole ? null : { position: last.position + 1, id: null },
  };
}
