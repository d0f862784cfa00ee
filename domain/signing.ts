import { createHmac } from 'node:crypto';

const PREFIX = 'whsec_';
const MIN_KEY_BYTES = 24;
const MAX_KEY_BYTES = 64;

/** The form in which a secret is shown and given to receivers (Standard Webhooks, "Signature scheme"). */
export const secretOf = (key: Buffer): string => PREFIX + key.toString('base64');

/** The key in a secret of that form. */
export const keyOf = (secret: string): Buffer => Buffer.from(secret.slice(PREFIX.length), 'base64');

/**
 * Brings a secret that somebody chose to its form: `whsec_` and base64, or any other text, whose bytes are the key.
 * Returns undefined when the key does not have 24 to 64 bytes.
 */
export function chosenSecret(text: string): string | undefined {
  const encoded = text.startsWith(PREFIX) ? text.slice(PREFIX.length) : undefined;
  if (encoded !== undefined && !/^[A-Za-z0-9+/]+={0,2}$/.test(encoded)) return undefined;
  const key = encoded === undefined ? Buffer.from(text) : Buffer.from(encoded, 'base64');
  return key.length >= MIN_KEY_BYTES && key.length <= MAX_KEY_BYTES ? secretOf(key) : undefined;
}

/** A message as it is signed: `timestamp` in seconds since 1970. */
type Signed = { id: string; timestamp: number; body: string };

/** The value of `webhook-signature`: one `v1,` HMAC-SHA256 of `id.timestamp.body` for each secret. */
export const signatureOf = (secrets: readonly string[], { id, timestamp, body }: Signed): string =>
  secrets
    .map(
      (secret) =>
        `v1,${createHmac('sha256', keyOf(secret)).update(`${id}.${timestamp}.${body}`).digest('base64')}`,
    )
    .join(' ');
