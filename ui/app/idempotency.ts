import { useMemo } from 'react';
import { Problem } from './problem.ts';

/** A random key. It needs no secure context, unlike `crypto.randomUUID`. */
const newKey = (): string =>
  [...crypto.getRandomValues(new Uint8Array(16))]
    .map((byte) => byte.toString(16).padStart(2, '0'))
    .join('');

/** The keys of what a form sends. */
export type IdempotencyKeys = {
  /** The key for a content: the same one until `end`, so that sending it again creates one record. */
  keyOf(content: unknown): string;
  /** Called with the result of a request, if it failed with its error. Once it was answered, the next one is another request. */
  end(error?: unknown): void;
  /** Sends a request with the key of its content, and ends it with its result. */
  once<Made>(content: unknown, send: (header: KeyHeader) => Promise<Made>): Promise<Made>;
};

/** The header that a request has its key in. */
export type KeyHeader = { 'Idempotency-Key': string };

/** The server has answered with an outcome. A proxy, which answers without a code of Holdfast, does not know it. */
const isDecided = (error: unknown): boolean =>
  error instanceof Problem &&
  error.status >= 400 &&
  error.status < 500 &&
  error.code !== 'idempotency_in_progress' &&
  error.code !== 'unexpected_answer';

export function createIdempotencyKeys(): IdempotencyKeys {
  let current: { content: string; key: string } | undefined;
  const keys: IdempotencyKeys = {
    keyOf(content) {
      const text = JSON.stringify(content ?? null);
      if (current?.content !== text) current = { content: text, key: newKey() };
      return current.key;
    },
    end(error) {
      // Without an answer, after an error of the server, and when it was cancelled on the way, the request may
      // have been carried out; while the first one is in progress, it will be.
      const hasSucceeded = error === undefined || error === null;
      if (hasSucceeded || isDecided(error)) current = undefined;
    },
    async once(content, send) {
      try {
        const made = await send({ 'Idempotency-Key': keys.keyOf(content) });
        keys.end();
        return made;
      } catch (error) {
        keys.end(error);
        throw error;
      }
    },
  };
  return keys;
}

/** Keys for the requests of a form: a double click, or a repeat after an outage, creates one record. */
export const useIdempotencyKeys = (): IdempotencyKeys => useMemo(() => createIdempotencyKeys(), []);
