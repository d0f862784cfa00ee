import { createHash, hash } from 'node:crypto';
import {
  claimKey,
  releaseKey,
  storeResponse,
  type StoredResponse,
} from '../../db/core/idempotency.ts';
import type { Knex } from '../../db/core/knex.ts';
import type { Caller, IdempotencyClaim } from '../../domain/shared/caller.ts';
import { AppError } from '../../domain/shared/errors.ts';
import { KEY_RETENTION_MS, KEY_LEASE_MS } from '../../domain/shared/idempotency.ts';
import type { Vault } from '../../platform/vault.ts';

export type Idempotency = ReturnType<typeof createIdempotency>;

/**
 * How to answer a request with an `Idempotency-Key`: do the work, or answer from the record that the
 * first request committed. `answer` is the response to the first request. It is missing if it was
 * not stored, and if the caller had other rights then: it might show what they may not see now.
 */
export type KeyedRequestState =
  | { kind: 'work'; claim: IdempotencyClaim }
  | {
      kind: 'committed';
      subjectId: string;
      answer: StoredResponse | undefined;
      /** The digest of the file that the first request uploaded, if it is known. */
      digest: string | undefined;
    };

/** A request as text that is equal for equal requests, and as the version before this one writes it. */
export type RequestForms = { current: string; older?: string };

/** The error of a request that differs from the one that has used its key. */
export const mismatchError = () =>
  new AppError('idempotency_mismatch', 'This Idempotency-Key was used for another request.');

const inProgressError = () =>
  new AppError(
    'idempotency_in_progress',
    'The first request with this Idempotency-Key is still in progress.',
    { retryAfterSeconds: 1 },
  );

/** Identifies the rights of a caller. Equal for the same roles at the same scopes. */
function rightsHash({ rights: { grants } }: Caller): string {
  const permissionsOf = new Map(
    grants.map(({ role }) => [role.id, [...role.permissions].sort().join()]),
  );
  const held = grants.map(({ role, level, targetId }) => `${level}/${targetId}/${role.id}`);
  return createHash('sha256')
    .update(JSON.stringify([[...permissionsOf].sort(), held.sort()]))
    .digest('base64url');
}

/** Of a request: the first is stored, each identifies it. */
type Fingerprints = readonly [Buffer, ...Buffer[]];

type Deps = {
  db: Knex;
  vault: Pick<Vault, 'fingerprints'>;
  passwords: { fingerprint(text: string, context: string): Promise<Buffer> };
};

/** Lets clients repeat a request that creates a record without creating it twice. */
export function createIdempotency({ db, vault, passwords }: Deps) {
  /**
   * What is stored of a request: payloads may have secrets, so nobody must guess them from it. Without
   * master keys only a slow hash prevents that.
   */
  async function fingerprintsOf(
    text: string,
    context: string,
    mayHoldSecret: boolean,
  ): Promise<Fingerprints> {
    const [current, ...others] = vault.fingerprints(text, context);
    if (current) return [current, ...others];
    return [
      mayHoldSecret ? await passwords.fingerprint(text, context) : hash('sha256', text, 'buffer'),
    ];
  }

  /** Undefined for the key of another request. Error: `idempotency_in_progress`. */
  async function claimAs(key: Omit<IdempotencyClaim, 'leaseUntil'>, fingerprints: Fingerprints) {
    const input = { key, fingerprints, leaseMs: KEY_LEASE_MS, keepMs: KEY_RETENTION_MS };
    // Once more if the other request has just freed it; a third one may have it by then.
    const claimed = (await claimKey(db, input)) ?? (await claimKey(db, input));
    if (claimed === undefined) throw inProgressError();
    const isSame =
      'claim' in claimed || fingerprints.some((each) => claimed.known.fingerprint.equals(each));
    return isSame ? claimed : undefined;
  }

  return {
    /**
     * Claims `key` for the caller. The request has everything that must be equal in a repeated
     * one; only a keyed hash is stored. Without master keys, that of a request which
     * `mayHoldSecret` is as slow as the hash of a password. Errors: `idempotency_mismatch`, `idempotency_in_progress`, `quota_exceeded`.
     */
    async claim(
      caller: Caller,
      key: string,
      { current, older }: RequestForms,
      mayHoldSecret: boolean,
    ): Promise<KeyedRequestState> {
      const { actorId, tenantId } = caller;
      const of = { actorId, tenantId, key };
      const context = JSON.stringify([actorId, tenantId, key]);
      const fingerprints = await fingerprintsOf(current, context, mayHoldSecret);
      let claimed = await claimAs(of, fingerprints);
      if (!claimed && older !== undefined && older !== current) {
        const others = await fingerprintsOf(older, context, mayHoldSecret);
        claimed = await claimAs(of, [...fingerprints, ...others]);
      }
      if (!claimed) throw mismatchError();
      if ('claim' in claimed) return { kind: 'work', claim: claimed.claim };
      const { subjectId, answer } = claimed.known;
      if (subjectId !== null) {
        const isCurrent = answer?.rights === rightsHash(caller);
        const { digest } = answer ?? {};
        return { kind: 'committed', subjectId, answer: isCurrent ? answer : undefined, digest };
      }
      throw inProgressError();
    },

    /**
     * Stores the response of a completed request. A request that has committed nothing frees its
     * key: doing it again does no harm, and whether the caller may see the response is checked again.
     */
    async storeResponse(
      caller: Caller,
      claim: IdempotencyClaim,
      answer: Omit<StoredResponse, 'rights'>,
    ): Promise<void> {
      const stored = await storeResponse(db, claim, { ...answer, rights: rightsHash(caller) });
      if (!stored) await releaseKey(db, claim);
    },

    /** Frees the key of a failed request, so that the client can send it again. */
    release: (claim: IdempotencyClaim): Promise<void> => releaseKey(db, claim),
  };
}
