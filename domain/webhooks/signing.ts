import { createHmac } from 'node:crypto';
import type { Warning } from '../shared/warnings.ts';

const PREFIX = 'whsec_';
/** Standard Webhooks recommends keys of 24 to 64 bytes. */
export const RECOMMENDED_KEY_BYTES = 24;
/** A shorter key in base64 is not a key: the text is. */
const MIN_BASE64_KEY_BYTES = 8;

/**
 * Formats a key as receivers configure it: `whsec_` and base64 (Standard Webhooks, "Signatures").
 */
export const encodeSecret = (key: Buffer): string => PREFIX + key.toString('base64');

/** Returns the key of a secret in that format. */
export const decodeSecret = (secret: string): Buffer =>
  Buffer.from(secret.slice(PREFIX.length), 'base64');

/** The key after `whsec_`; undefined unless that is base64 of at least 8 bytes. */
function base64Key(text: string): Buffer | undefined {
  if (!text.startsWith(PREFIX)) return undefined;
  const key = decodeSecret(text);
  const digits = (base64: string) => base64.replace(/={0,2}$/, '');
  const isCanonical = digits(key.toString('base64')) === digits(text.slice(PREFIX.length));
  return isCanonical && key.length >= MIN_BASE64_KEY_BYTES ? key : undefined;
}

/**
 * Normalizes a secret that a caller chose to `whsec_` and base64. The key of `whsec_` and base64 is
 * what the base64 encodes; the key of any other text is its UTF-8 bytes. Warns about a short key,
 * and about `whsec_` without base64, which libraries of Standard Webhooks cannot read.
 */
export function normalizeSecret(text: string): { secret: string; warnings: Warning[] } {
  const encoded = base64Key(text);
  const key = encoded ?? Buffer.from(text);
  const warnings: Warning[] = [];
  const warn = (code: string, message: string) =>
    void warnings.push({ code, pointer: '/secret', message });
  if (encoded === undefined && text.startsWith(PREFIX))
    warn(
      'secret_not_base64',
      'begins with whsec_ but is not base64 of 8 bytes or more, so its UTF-8 bytes are the key',
    );
  if (key.length < RECOMMENDED_KEY_BYTES)
    warn(
      'short_secret',
      `is a key of ${key.length} bytes; ${RECOMMENDED_KEY_BYTES} and more are harder to guess`,
    );
  return { secret: encodeSecret(key), warnings };
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
