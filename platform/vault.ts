import { createHmac, hkdfSync } from 'node:crypto';
import { AppError } from '../domain/shared/errors.ts';
import { openBytes, sealBytes, type NamedKey } from './aesGcm.ts';

export type Vault = ReturnType<typeof createVault>;

const VERSION = 'v1';

/** Names the use of the keys of fingerprints, so that no key has two uses (RFC 5869, `info`). */
const FINGERPRINT_KEY = 'holdfast:fingerprint:v1';

/**
 * Encrypts secrets for the database with the master keys: `v1.<key id>.<base64url>`. The first key
 * encrypts and every key decrypts, so that keys can be rotated. `context` names the record and
 * field of a secret: a value that is copied to another one does not decrypt.
 */
export function createVault(keys: readonly NamedKey[]) {
  const [current] = keys;
  const byId = new Map(keys.map(({ id, key }) => [id, key]));
  const fingerprintKeys = keys.map(({ key }) =>
    Buffer.from(hkdfSync('sha256', key, new Uint8Array(), FINGERPRINT_KEY, 32)),
  );
  const keyIdOf = (sealed: string) => sealed.split('.')[1] ?? '';

  /** Decrypts a value. Error: `master_key_missing`, also if its key is another one, or it was modified. */
  function open(sealed: string, context: string): string {
    const [, keyId = '', bytes = ''] = sealed.split('.');
    const key = byId.get(keyId);
    if (!key) throw new AppError('master_key_missing', `HOLDFAST_MASTER_KEYS has no key ${keyId}.`);
    try {
      return openBytes(key, Buffer.from(bytes, 'base64url'), context).toString('utf8');
    } catch {
      throw new AppError(
        'master_key_missing',
        `The key ${keyId} of HOLDFAST_MASTER_KEYS does not open a stored secret: it is another key of this name, or the secret was modified.`,
      );
    }
  }

  return {
    /** Encrypts `text`. Error: `master_key_missing`. */
    seal(text: string, context: string): string {
      if (!current)
        throw new AppError(
          'master_key_missing',
          'Secrets cannot be stored: HOLDFAST_MASTER_KEYS is not set.',
        );
      return `${VERSION}.${current.id}.${sealBytes(current.key, Buffer.from(text), context).toString('base64url')}`;
    },

    open,

    /** Returns true if `open` decrypts a value. */
    canOpen(sealed: string, context: string): boolean {
      try {
        open(sealed, context);
        return true;
      } catch {
        return false;
      }
    },

    /**
     * Fingerprints (HMAC-SHA-256) of a text that may contain a secret: one for each key, that of the
     * current key first, none without keys. Without the keys no text can be guessed from them.
     */
    fingerprints: (text: string, context: string): Buffer[] =>
      fingerprintKeys.map((key) =>
        createHmac('sha256', key)
          .update(JSON.stringify([context, text]))
          .digest(),
      ),

    /** Returns true if values that are encrypted with this key can be opened. */
    has: (keyId: string): boolean => byId.has(keyId),

    /** The id of the key that encrypts; undefined without keys. */
    currentKeyId: (): string | undefined => current?.id,

    /** Returns true if a value is encrypted with the first key. */
    isCurrent: (sealed: string): boolean => keyIdOf(sealed) === current?.id,
  };
}
