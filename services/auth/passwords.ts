import { createHash, randomBytes } from 'node:crypto';
import { hash, hashRaw, verify } from '@node-rs/argon2';
import { AppError, invalidField } from '../../domain/shared/errors.ts';

export type Passwords = ReturnType<typeof createPasswords>;

/** OWASP Password Storage Cheat Sheet, argon2id: 19 MiB, 2 passes, 1 lane. */
const COST = { memoryCost: 19_456, timeCost: 2, parallelism: 1 };

/** The hash of random bytes that nobody has kept, at the same cost. */
const DECOY =
  '$argon2id$v=19$m=19456,t=2,p=1$0CBA5GRqSuafZC/f9A7prw$uePHghexK3W4DiIJB+gGZxKV6hoBWCVDiyHIXlyjGjo';

/** Each hash takes 19 MiB and a core for some tens of milliseconds: so many at once, and so many more waiting. */
const MAX_AT_ONCE = 4;
const MAX_WAITING = 100;

export const MIN_PASSWORD_LENGTH = 12;
export const MAX_PASSWORD_LENGTH = 256;

/** Hashes and checks passwords, and says which ones will not do. */
export function createPasswords() {
  let running = 0;
  const waiting: (() => void)[] = [];
  let common: Promise<ReadonlySet<string>> | undefined;

  async function bounded<T>(work: () => Promise<T>): Promise<T> {
    if (running >= MAX_AT_ONCE) {
      if (waiting.length >= MAX_WAITING) {
        throw new AppError('too_many_requests', 'Too many passwords are being checked.', {
          retryAfterSeconds: 2,
        });
      }
      await new Promise<void>((resolve) => waiting.push(resolve));
    } else {
      running += 1;
    }
    try {
      return await work();
    } finally {
      const next = waiting.shift();
      if (next) next();
      else running -= 1;
    }
  }

  /** One spelling for one password, however a keyboard composes it (NIST SP 800-63B, 5.1.1.2). */
  const spell = (password: string) => password.normalize('NFKC');

  const hashOf = (password: string): Promise<string> => bounded(() => hash(spell(password), COST));

  return {
    hash: hashOf,

    /**
     * True when `password` is the one of `passwordHash`. Without a hash it takes as long and is false, so that
     * nobody learns from the time whether an account exists. Error: `too_many_requests`.
     */
    async verify(passwordHash: string | null | undefined, password: string): Promise<boolean> {
      const right = await bounded(() => verify(passwordHash ?? DECOY, spell(password)));
      return right && typeof passwordHash === 'string';
    },

    /** Throws `invalid_request` at `pointer` for a password that is too short, too long, common or the name itself. */
    async check(password: string, username: string, pointer: string): Promise<void> {
      const refuse = (code: string, message: string) => {
        throw invalidField('body', pointer, code, message);
      };
      // Code points: what NIST SP 800-63B counts.
      const length = Array.from(spell(password)).length;
      if (length < MIN_PASSWORD_LENGTH)
        refuse('minLength', `must have at least ${MIN_PASSWORD_LENGTH} characters`);
      if (length > MAX_PASSWORD_LENGTH)
        refuse('maxLength', `must have at most ${MAX_PASSWORD_LENGTH} characters`);
      const lower = spell(password).toLowerCase();
      if (username.length >= 4 && lower.includes(username.toLowerCase()))
        refuse('username', 'must not contain the user name');
      if (new Set(lower).size < 5) refuse('common', 'must have at least 5 different characters');
      common ??= readCommon();
      // A common password with digits or signs behind it is as easy to guess.
      if ((await common).has(lower) || (await common).has(lower.replace(/[^\p{L}]+$/u, ''))) {
        refuse('common', 'is among the most used passwords, or one of them with digits behind it');
      }
    },

    /** A fingerprint of something that holds a secret: the same for the same text and context, and slow to guess. */
    fingerprint: (text: string, context: string): Promise<Buffer> =>
      bounded(() =>
        hashRaw(text, {
          ...COST,
          salt: createHash('sha256').update(context).digest().subarray(0, 16),
        }),
      ),

    /** Makes up a password of 120 random bits for somebody's first login. Error: `too_many_requests`. */
    async makeUp(): Promise<{ oneTimePassword: string; passwordHash: string }> {
      const oneTimePassword = randomBytes(15)
        .toString('base64url')
        .replace(/(.{5})(?=.)/g, '$1.');
      return { oneTimePassword, passwordHash: await hashOf(oneTimePassword) };
    },
  };
}

async function readCommon(): Promise<ReadonlySet<string>> {
  const { dictionary } = await import('@zxcvbn-ts/language-common');
  return new Set(dictionary['passwords-common']);
}
