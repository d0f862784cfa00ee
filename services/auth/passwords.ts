import { createHash, randomBytes } from 'node:crypto';
import { hash, hashRaw, verify } from '@node-rs/argon2';
import { invalidFields, type FieldError } from '../../domain/shared/errors.ts';
import { createBoundedQueue } from '../../platform/boundedQueue.ts';

export type Passwords = ReturnType<typeof createPasswords>;

/** Parameters of argon2id: KiB of memory, passes and lanes. */
export type PasswordCost = { memoryCost: number; timeCost: number; parallelism: number };

/** Parameters for argon2id of the OWASP Password Storage Cheat Sheet: 19 MiB, 2 passes, 1 lane. */
const COST: PasswordCost = { memoryCost: 19_456, timeCost: 2, parallelism: 1 };

/** Hash of discarded random bytes with the same parameters, verified when there is no account. */
const DUMMY_HASH =
  '$argon2id$v=19$m=19456,t=2,p=1$0CBA5GRqSuafZC/f9A7prw$uePHghexK3W4DiIJB+gGZxKV6hoBWCVDiyHIXlyjGjo';

/**
 * Each hash needs 19 MiB and, for tens of milliseconds, a core and one of the four threads of libuv.
 * Name resolution and files use these threads too: hashes never occupy all of them.
 */
const MAX_CONCURRENT = 2;
const MAX_QUEUED = 100;

export const MIN_PASSWORD_LENGTH = 12;
export const MAX_PASSWORD_LENGTH = 256;

/** Hashes and verifies passwords, and rejects weak ones. New hashes have `cost`. */
export function createPasswords(cost = COST) {
  const queue = createBoundedQueue({
    maxRunning: MAX_CONCURRENT,
    maxQueued: MAX_QUEUED,
    busy: 'Too many passwords are being verified.',
  });
  /**
   * Unicode normalization, since keyboards compose characters differently (NIST SP 800-63B,
   * 5.1.1.2).
   */
  const normalize = (password: string) => password.normalize('NFKC');

  const hashPassword = (password: string): Promise<string> =>
    queue.run(() => hash(normalize(password), cost));

  return {
    hash: hashPassword,

    /**
     * True when `password` matches `passwordHash`. Without a hash it returns false after the same
     * time, so that the response time does not reveal whether an account exists. Error:
     * `too_many_requests`.
     */
    async verify(passwordHash: string | null | undefined, password: string): Promise<boolean> {
      const matches = await queue.run(() =>
        verify(passwordHash ?? DUMMY_HASH, normalize(password)),
      );
      return matches && typeof passwordHash === 'string';
    },

    /**
     * Throws `invalid_request` at `pointer` with every rule that a password breaks: too short, too
     * long, common, or contains the user name.
     */
    async check(password: string, username: string, pointer: string): Promise<void> {
      const errors: FieldError[] = [];
      const reject = (code: string, message: string) =>
        errors.push({ in: 'body', pointer, code, message });
      // NIST SP 800-63B counts code points.
      const length = Array.from(normalize(password)).length;
      if (length < MIN_PASSWORD_LENGTH)
        reject('minLength', `must have at least ${MIN_PASSWORD_LENGTH} characters`);
      if (length > MAX_PASSWORD_LENGTH)
        reject('maxLength', `must have at most ${MAX_PASSWORD_LENGTH} characters`);
      const lower = normalize(password).toLowerCase();
      if (username.length >= 4 && lower.includes(username.toLowerCase()))
        reject('username', 'must not contain the user name');
      if (new Set(lower).size < 5) reject('common', 'must have at least 5 different characters');
      commonPasswords ??= loadCommonPasswords();
      // A common password followed by digits or symbols is as easy to guess.
      if (
        (await commonPasswords).has(lower) ||
        (await commonPasswords).has(lower.replace(/[^\p{L}]+$/u, ''))
      ) {
        reject('common', 'is a common password, possibly followed by digits');
      }
      if (errors.length > 0) throw invalidFields(errors);
    },

    /** Deterministic slow hash of a text that contains a secret; `context` is the salt. */
    fingerprint: (text: string, context: string): Promise<Buffer> =>
      queue.run(() =>
        hashRaw(text, {
          ...COST,
          salt: createHash('sha256').update(context).digest().subarray(0, 16),
        }),
      ),

    /**
     * Generates a one-time password of 120 random bits and its hash. Error: `too_many_requests`.
     */
    async generate(): Promise<{ oneTimePassword: string; passwordHash: string }> {
      const oneTimePassword = randomBytes(15)
        .toString('base64url')
        .replace(/(.{5})(?=.)/g, '$1.');
      return { oneTimePassword, passwordHash: await hashPassword(oneTimePassword) };
    },
  };
}

let commonPasswords: Promise<ReadonlySet<string>> | undefined;

async function loadCommonPasswords(): Promise<ReadonlySet<string>> {
  const { dictionary } = await import('@zxcvbn-ts/language-common');
  return new Set(dictionary['passwords-common']);
}
