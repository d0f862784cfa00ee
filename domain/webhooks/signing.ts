import { createHmac } from 'node:crypto';

const PREFIX = 'whsec_';
const MIN_KEY_BYTES = 24;
const MAX_KEY_BYTES = 64;

/**
 * Formats a key as receivers configure it: `whsec_` and base64 (Standard Webhooks, "Signatures").
 */
export const encodeSecret = (key: Buffer): string => PREFIX + key.toString('base64');

/** Returns the key of a secret in that format. */
export const decodeSecret = (secret: string): Buffer =>
  Buffer.from(secret.slice(PREFIX.length), 'base64');

/**
 * Normalizes a secret that a caller chose. Text that starts with `whsec_` is decoded as base64; the
 * UTF-8 bytes of any other text are the key. Returns undefined unless the key has 24 to 64 bytes.
 */
export function normalizeSecret(text: string): string | undefined {
  const encoded = text.startsWith(PREFIX) ? text.slice(PREFIX.length) : undefined;
  if (encoded !== undefined && !/^[A-Za-z0-9+/]+={0,2}$/.test(encoded)) return undefined;
  const key = encoded === undefined ? Buffer.from(text) : Buffer.from(encoded, 'base64');
  return key.length >= MIN_KEY_BYTES && key.length <= MAX_KEY_BYTES ? encodeSecret(key) : undefined;
}

/** What a signature covers. `timestamp` is in seconds since 1970. */
type SignedContent = { id: string; timestamp: number; body: string };

/**
 * The value of the header `webhook-signature` (Standard Webhooks): for each secret `v1,` and the
 * HMAC-SHA256 of `id.timestamp.body` in base64, separated by spaces.
 */
export function signatureHeader(
  secrets: readonly string[],
  { id, timestamp, body }: SignedContent,
): string {
  const content = `${id}.${timestamp}.${body}`;
  const sign = (secret: string) =>
    createHmac('sha256', decodeSecret(secret)).update(content).digest('base64');
  return secrets.map((secret) => `v1,${sign(secret)}`).join(' ');
}
