import { asRefusal } from './constraints.ts';
import type { Knex } from './knex.ts';
import type { IdempotencyClaim } from '../../domain/shared/caller.ts';

/** until 0.4: `rights` is required; responses that 0.2.0 has stored have neither `rights` nor `digest`. */
export type StoredResponse = {
  status: number;
  headers: Record<string, string | string[]>;
  body: unknown;
  /** Identifies the rights that the caller had. */
  rights?: string;
  /** Of an uploaded file. */
  digest?: string;
};

/** A key that an earlier request has used. */
export type KnownKey = {
  fingerprint: Buffer;
  leaseUntil: Date;
  /** The record that the first request committed, even if its response was not stored. */
  subjectId: string | null;
  answer: StoredResponse | null;
};

const keyOf = (claim: IdempotencyClaim) => ({
  actor_id: claim.actorId,
  tenant_id: claim.tenantId,
  key: claim.key,
});

/** Matches the key only while it belongs to this claim. */
const heldBy = (claim: IdempotencyClaim) => ({ ...keyOf(claim), lease_until: claim.leaseUntil });

type ClaimInput = {
  claim: IdempotencyClaim;
  /** Of the request: the first is stored, each identifies it. */
  fingerprints: readonly [Buffer, ...Buffer[]];
  now: Date;
  keepMs: number;
};

/**
 * Claims a key for one request. Returns undefined when the claim succeeded: the key is new, it has
 * expired, or the lease of an earlier request ended before that committed anything. Otherwise
 * returns the key as stored. Error: `quota_exceeded`.
 */
export async function claimKey(
  db: Knex,
  { claim, fingerprints, now, keepMs }: ClaimInput,
): Promise<KnownKey | undefined> {
  const outdated = new Date(now.getTime() - keepMs);
  const { rowCount } = await db
    .raw<{ rowCount: number }>(
      `INSERT INTO idempotency_keys AS k (actor_id, tenant_id, key, fingerprint, lease_until, created_at)
     VALUES (?, ?, ?, ?, ?, ?)
     ON CONFLICT (actor_id, tenant_id, key) DO UPDATE
       SET fingerprint = excluded.fingerprint, lease_until = excluded.lease_until, created_at = excluded.created_at,
           subject_id = NULL, answer = NULL
       WHERE k.created_at < ?
          OR (k.lease_until < ? AND k.subject_id IS NULL AND k.fingerprint = ANY (?))`,
      [
        ...[claim.actorId, claim.tenantId, claim.key, fingerprints[0], claim.leaseUntil, now],
        ...[outdated, now, [...fingerprints]],
      ],
    )
    .catch((error: unknown) => {
      throw asRefusal(error);
    });
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
 * Stores the result of a request with its key, in the same transaction. Returns false when the
 * claim has expired and another request has the key. The transaction must roll back then.
 */
export async function completeKey(
  trx: Knex.Transaction,
  claim: IdempotencyClaim,
  subjectId: string,
): Promise<boolean> {
  const held = { ...heldBy(claim), subject_id: null };
  return (await trx('idempotency_keys').where(held).update({ subject_id: subjectId })) === 1;
}

/**
 * Stores the response for repeated requests with this key. Returns false when the request has
 * committed nothing, or no longer has the key.
 */
export const storeResponse = async (
  db: Knex,
  claim: IdempotencyClaim,
  answer: StoredResponse,
): Promise<boolean> =>
  (await db('idempotency_keys')
    .where(heldBy(claim))
    .whereNotNull('subject_id')
    .update({ answer: JSON.stringify(answer) })) === 1;

/** Frees a key whose request failed without committing anything. */
export const releaseKey = async (db: Knex, claim: IdempotencyClaim): Promise<void> =>
  void (await db('idempotency_keys').where(heldBy(claim)).whereNull('subject_id').delete());

/** Deletes keys created before `before`, at most `limit`. Returns the number of deleted keys. */
export async function purgeKeys(db: Knex, before: Date, limit: number): Promise<number> {
  const { rowCount } = await db.raw<{ rowCount: number }>(
    `DELETE FROM idempotency_keys WHERE ctid IN
       (SELECT ctid FROM idempotency_keys WHERE created_at < ? ORDER BY created_at LIMIT ?)`,
    [before, limit],
  );
  return rowCount;
}
