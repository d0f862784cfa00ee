import { createCipheriv, createDecipheriv, randomBytes } from 'node:crypto';

/** An AES-256 key with the name under which what it sealed finds it again. */
export type NamedKey = { id: string; key: Buffer };

const IV_BYTES = 12;
const TAG_BYTES = 16;

/** Seals with AES-256-GCM (NIST SP 800-38D) and a random nonce: nonce, ciphertext, tag. `context` must be the same to open it. */
export function sealBytes(key: Buffer, plain: Uint8Array, context: string): Buffer {
  const iv = randomBytes(IV_BYTES);
  const cipher = createCipheriv('aes-256-gcm', key, iv).setAAD(Buffer.from(context));
  return Buffer.concat([iv, cipher.update(plain), cipher.final(), cipher.getAuthTag()]);
}

/** The reverse of `sealBytes`. Throws when anything was changed, or the key or context is another one. */
export function openBytes(key: Buffer, sealed: Buffer, context: string): Buffer {
  const decipher = createDecipheriv('aes-256-gcm', key, sealed.subarray(0, IV_BYTES), {
    authTagLength: TAG_BYTES,
  });
  decipher.setAAD(Buffer.from(context)).setAuthTag(sealed.subarray(-TAG_BYTES));
  return Buffer.concat([decipher.update(sealed.subarray(IV_BYTES, -TAG_BYTES)), decipher.final()]);
}
