import { asRefusal } from './constraints.ts';
import { SHOWN_CLOCK } from './databaseTime.ts';
import type { Knex } from './knex.ts';
import type { IdempotencyClaim } from '../../domain/shared/caller.ts';

/** until 0.4: `rights` is required; responses that 0.2.0 has stored have neither `rights` nor `digest`. */
export type StoredResponse = {
  status: number;
  headers: Record<string, string | string[]>;
  body: unknown;
  /** Identifies the rights that the caller had. */
  rights?: string;
  /** The digest of an uploaded file. */
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

const keyOf = (claim: Omit<IdempotencyClaim, 'leaseUntil'>) => ({
  actor_id: claim.actorId,
  tenant_id: claim.tenantId,
  key: claim.key,
});

/** Matches the key only while it belongs to this claim. */
const heldBy = (claim: IdempotencyClaim) => ({ ...keyOf(claim), lease_until: claim.leaseUntil });

type ClaimInput = {
  key: Omit<IdempotencyClaim, 'leaseUntil'>;
  /** Fingerprints of the request: the first is stored, each identifies it. */
  fingerprints: readonly [Buffer, ...Buffer[]];
  leaseMs: number;
  keepMs: number;
};

/**
 * Claims a key for one request, if it is new, has expired, or the lease of an earlier request ended before that
 * committed anything: all by the clock of PostgreSQL. Otherwise returns the key as stored; undefined if the other request
 * has just freed it. Error: `quota_exceeded`.
 */
export async function claimKey(
  db: Knex,
  input: ClaimInput,
): Promise<{ claim: IdempotencyClaim } | { known: KnownKey } | undefined> {
  const { key, fingerprints, leaseMs, keepMs } = input;
  const { rows } = await db
    .raw<{ rows: { lease_until: Date }[] }>(
      `INSERT INTO idempotency_keys AS k (actor_id, tenant_id, key, fingerprint, lease_until, created_at)
     SELECT ?, ?, ?, ?, t.now + ? * interval '1 ms', t.now FROM (SELECT ${SHOWN_CLOCK} AS now) AS t
     ON CONFLICT (actor_id, tenant_id, key) DO UPDATE
       SET fingerprint = excluded.fingerprint, lease_until = excluded.lease_until, created_at = excluded.created_at,
           subject_id = NULL, answer = NULL
       WHERE k.created_at < excluded.created_at - ? * interval '1 ms'
          OR (k.lease_until < excluded.created_at AND k.subject_id IS NULL AND k.fingerprint = ANY (?))
     RETURNING lease_until`,
      [
        ...[key.actorId, key.tenantId, key.key, fingerprints[0], leaseMs],
        ...[keepMs, [...fingerprints]],
      ],
    )
    .catch((error: unknown) => {
      throw asRefusal(error);
    });
  if (rows[0]) return { claim: { ...key, leaseUntil: rows[0].lease_until } };
  const row = await db('idempotency_keys').where(keyOf(key)).first();
  return (
    row && {
      known: {
        fingerprint: row.fingerprint,
        leaseUntil: row.lease_until,
        subjectId: row.subject_id,
        answer: row.answer,
      },
    }
  );
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
