import { createHash } from 'node:crypto';
import { claimKey, releaseKey, storeAnswer, type StoredAnswer } from '../../db/core/idempotency.ts';
import type { Knex } from '../../db/core/knex.ts';
import type { Caller, IdempotencyClaim } from '../../domain/shared/caller.ts';
import { AppError } from '../../domain/shared/errors.ts';
import { KEEP_KEYS_MS, KEY_LEASE_MS } from '../../domain/idempotency.ts';
import type { Clock } from '../../platform/clock.ts';
import type { Passwords } from '../auth/passwords.ts';

export type Idempotency = ReturnType<typeof createIdempotency>;

/** What a request with a key is to do: its work, or give an answer that is known, or make it from the record. */
export type KeyedStart =
  | { kind: 'work'; claim: IdempotencyClaim }
  | { kind: 'answered'; answer: StoredAnswer }
  | { kind: 'committed'; subjectId: string };

/** Lets a client repeat a request that creates something without creating it twice. */
export function createIdempotency({
  db,
  clock,
  passwords,
}: {
  db: Knex;
  clock: Clock;
  passwords: Passwords;
}) {
  return {
    /**
     * Claims `key` for the caller. `request` is everything that makes two requests the same; one that holds a secret
     * is told apart by a hash that is as slow as that of a password.
     * Errors: `idempotency_mismatch`, `idempotency_in_progress`.
     */
    async begin(
      { actorId, tenantId }: Caller,
      key: string,
      request: readonly string[],
      holdsSecret: boolean,
    ): Promise<KeyedStart> {
      const text = JSON.stringify(request);
      const fingerprint = holdsSecret
        ? await passwords.fingerprint(text, JSON.stringify([actorId, tenantId, key]))
        : createHash('sha256').update(text).digest();
      const now = clock.now();
      const claim = { actorId, tenantId, key, leaseUntil: new Date(now.getTime() + KEY_LEASE_MS) };
      const known = await claimKey(db, { claim, fingerprint, now, keepMs: KEEP_KEYS_MS });
      if (!known) return { kind: 'work', claim };
      if (!known.fingerprint.equals(fingerprint)) {
        throw new AppError(
          'idempotency_mismatch',
          'This Idempotency-Key was used for another request.',
        );
      }
      if (known.answer) return { kind: 'answered', answer: known.answer };
      if (known.subjectId !== null) return { kind: 'committed', subjectId: known.subjectId };
      throw new AppError(
        'idempotency_in_progress',
        'The first request with this Idempotency-Key is still at work.',
        {
          retryAfterSeconds: 1,
        },
      );
    },

    /** Keeps the answer of a request that did its work. */
    finish: (claim: IdempotencyClaim, answer: StoredAnswer): Promise<void> =>
      storeAnswer(db, claim, answer),

    /** Frees the key of a request that failed, so that it can be sent again. */
    release: (claim: IdempotencyClaim): Promise<void> => releaseKey(db, claim),
  };
}
