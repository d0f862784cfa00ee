import type { Knex } from './knex.ts';
import type { IdempotencyClaim } from '../../domain/shared/caller.ts';

export type StoredAnswer = {
  status: number;
  headers: Record<string, string | string[]>;
  body: unknown;
};

/** What is known of a key that somebody used before. */
export type KnownKey = {
  fingerprint: Buffer;
  leaseUntil: Date;
  /** The record that the first request committed, whether or not its answer was stored. */
  subjectId: string | null;
  answer: StoredAnswer | null;
};

const keyOf = (claim: IdempotencyClaim) => ({
  actor_id: claim.actorId,
  tenant_id: claim.tenantId,
  key: claim.key,
});

/** The key while it is still this claim's and no later one's. */
const heldBy = (claim: IdempotencyClaim) => ({ ...keyOf(claim), lease_until: claim.leaseUntil });

type Claiming = { claim: IdempotencyClaim; fingerprint: Buffer; now: Date; keepMs: number };

/**
 * Claims a key for one request. Returns undefined when it is ours: it is new, it is too old to count, or whoever
 * had it died before anything was committed. Otherwise what is known of it.
 */
export async function claimKey(
  db: Knex,
  { claim, fingerprint, now, keepMs }: Claiming,
): Promise<KnownKey | undefined> {
  const outdated = new Date(now.getTime() - keepMs);
  const { rowCount } = await db.raw<{ rowCount: number }>(
    `INSERT INTO idempotency_keys AS k (actor_id, tenant_id, key, fingerprint, lease_until, created_at)
     VALUES (?, ?, ?, ?, ?, ?)
     ON CONFLICT (actor_id, tenant_id, key) DO UPDATE
       SET fingerprint = excluded.fingerprint, lease_until = excluded.lease_until, created_at = excluded.created_at,
           subject_id = NULL, answer = NULL
       WHERE k.created_at < ?
          OR (k.lease_until < ? AND k.subject_id IS NULL AND k.answer IS NULL AND k.fingerprint = excluded.fingerprint)`,
    [claim.actorId, claim.tenantId, claim.key, fingerprint, claim.leaseUntil, now, outdated, now],
  );
  if (rowCount === 1) return undefined;
  const row = await db('idempotency_keys').where(keyOf(claim)).first();
  if (!row) return undefined;
  return {
    fingerprint: row.fingerprint,
    leaseUntil: row.lease_until,
    subjectId: row.subject_id,
    answer: row.answer,
  };
}

/**
 * Ties a key to the record of the transaction that commits it. Returns false when the claim ran out and another
 * request has the key: the transaction must not commit then.
 */
export async function fulfilKey(
  trx: Knex.Transaction,
  claim: IdempotencyClaim,
  subjectId: string,
): Promise<boolean> {
  const held = { ...heldBy(claim), subject_id: null };
  return (await trx('idempotency_keys').where(held).update({ subject_id: subjectId })) === 1;
}

/** Keeps the answer for the next request with this key. */
export const storeAnswer = async (
  db: Knex,
  claim: IdempotencyClaim,
  answer: StoredAnswer,
): Promise<void> =>
  void (await db('idempotency_keys')
    .where(heldBy(claim))
    .update({ answer: JSON.stringify(answer) }));

/** Frees a key whose request failed without committing anything. */
export const releaseKey = async (db: Knex, claim: IdempotencyClaim): Promise<void> =>
  void (await db('idempotency_keys').where(heldBy(claim)).whereNull('subject_id').delete());

/** Forgets keys older than `before`, at most `limit`. Returns how many. */
export async function purgeKeys(db: Knex, before: Date, limit: number): Promise<number> {
  const { rowCount } = await db.raw<{ rowCount: number }>(
    `DELETE FROM idempotency_keys WHERE ctid IN
       (SELECT ctid FROM idempotency_keys WHERE created_at < ? ORDER BY created_at LIMIT ?)`,
    [before, limit],
  );
  return rowCount;
}
