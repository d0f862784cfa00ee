import { createHash } from 'node:crypto';
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

export type Idempotency = ReturnType<typeof createIdempotency>;

/**
 * How to answer a request with an `Idempotency-Key`: do the work, send the stored response, or
 * build the response from the record that the first request committed.
 */
export type KeyedRequestState =
  | { kind: 'work'; claim: IdempotencyClaim }
  | { kind: 'answered'; answer: StoredResponse }
  | { kind: 'committed'; subjectId: string };

/** Lets clients repeat a request that creates a record without creating it twice. */
export function createIdempotency({
  db,
  passwords,
}: {
  db: Knex;
  passwords: { fingerprint(text: string, context: string): Promise<Buffer> };
}) {
  return {
    /**
     * Claims `key` for the caller. `request` has everything that must be equal in a repeated
     * request; only its hash is stored. With `holdsSecret`, the hash is as slow as that of a
     * password. Errors: `idempotency_mismatch`, `idempotency_in_progress`.
     */
    async claim(
      { actorId, tenantId }: Caller,
      key: string,
      request: readonly string[],
      holdsSecret: boolean,
    ): Promise<KeyedRequestState> {
      const text = JSON.stringify(request);
      const fingerprint = holdsSecret
        ? await passwords.fingerprint(text, JSON.stringify([actorId, tenantId, key]))
        : createHash('sha256').update(text).digest();
      const now = new Date();
      const claim = { actorId, tenantId, key, leaseUntil: new Date(now.getTime() + KEY_LEASE_MS) };
      const existing = await claimKey(db, { claim, fingerprint, now, keepMs: KEY_RETENTION_MS });
      if (!existing) return { kind: 'work', claim };
      if (!existing.fingerprint.equals(fingerprint)) {
        throw new AppError(
          'idempotency_mismatch',
          'This Idempotency-Key was used for another request.',
        );
      }
      if (existing.answer) return { kind: 'answered', answer: existing.answer };
      if (existing.subjectId !== null) return { kind: 'committed', subjectId: existing.subjectId };
      throw new AppError(
        'idempotency_in_progress',
        'The first request with this Idempotency-Key is still in progress.',
        {
          retryAfterSeconds: 1,
        },
      );
    },

    /** Stores the response of a completed request. */
    storeResponse: (claim: IdempotencyClaim, answer: StoredResponse): Promise<void> =>
      storeResponse(db, claim, answer),

    /** Frees the key of a failed request, so that the client can send it again. */
    release: (claim: IdempotencyClaim): Promise<void> => releaseKey(db, claim),
  };
}
