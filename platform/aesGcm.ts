import { createCipheriv, createDecipheriv, randomBytes } from 'node:crypto';

/** An AES-256 key. Ciphertexts name the key by its `id`. */
export type NamedKey = { id: string; key: Buffer };

const IV_BYTES = 12;
const TAG_BYTES = 16;

/**
 * Encrypts with AES-256-GCM (NIST SP 800-38D) and a random nonce. Returns nonce, ciphertext and
 * tag. `context` is authenticated: opening requires the same one.
 */
export function sealBytes(key: Buffer, plain: Uint8Array, context: string): Buffer {
  const iv = randomBytes(IV_BYTES);
  const cipher = createCipheriv('aes-256-gcm', key, iv).setAAD(Buffer.from(context));
  return Buffer.concat([iv, cipher.update(plain), cipher.final(), cipher.getAuthTag()]);
}

/**
 * Decrypts the result of `sealBytes`. Throws if it was modified, or if the key or context differs.
 */
export function openBytes(key: Buffer, sealed: Buffer, context: string): Buffer {
  const decipher = createDecipheriv('aes-256-gcm', key, sealed.subarray(0, IV_BYTES), {
    authTagLength: TAG_BYTES,
  });
  decipher.setAAD(Buffer.from(context)).setAuthTag(sealed.subarray(-TAG_BYTES));
  return Buffer.concat([decipher.update(sealed.subarray(IV_BYTES, -TAG_BYTES)), decipher.final()]);
}
