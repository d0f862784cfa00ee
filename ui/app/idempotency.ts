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
  /** Called with the result of a request. Whatever was decided, the next one is another request. */
  end(error?: unknown): void;
};

export function createIdempotencyKeys(): IdempotencyKeys {
  let current: { content: string; key: string } | undefined;
  return {
    keyOf(content) {
      const text = JSON.stringify(content ?? null);
      if (current?.content !== text) current = { content: text, key: newKey() };
      return current.key;
    },
    end(error) {
      // Without an answer, and after an error of the server, the request may have been carried out.
      const isUnknown = error instanceof Problem && (error.status === 0 || error.status >= 500);
      if (!isUnknown) current = undefined;
    },
  };
}

/** Keys for the requests of a form: a double click, or a repeat after an outage, creates one record. */
export const useIdempotencyKeys = (): IdempotencyKeys => useMemo(createIdempotencyKeys, []);
