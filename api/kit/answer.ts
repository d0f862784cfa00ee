import type { Readable } from 'node:stream';

export type AnswerHeaders = Record<string, string | string[]>;

/** What a route answers. A stream is sent as it comes, with the content type given. */
export type Answer = {
  status: number;
  headers: AnswerHeaders;
  body?: unknown;
  stream?: { contentType: string; source: Readable };
  /** The body holds a secret that is shown this once: it is not kept for an `Idempotency-Key`. */
  showOnce?: boolean;
};

export const ok = (body: unknown, headers: AnswerHeaders = {}): Answer => ({
  status: 200,
  headers,
  body,
});

/** 201: the record at `location` was made. */
export const created = (location: string, body: unknown, headers: AnswerHeaders = {}): Answer => ({
  status: 201,
  headers: { location, ...headers },
  body,
});

/** 202: the work goes on after the answer. */
export const accepted = (body: unknown, headers: AnswerHeaders = {}): Answer => ({
  status: 202,
  headers,
  body,
});

/** 204: done, nothing to say. */
export const noContent = (headers: AnswerHeaders = {}): Answer => ({ status: 204, headers });

/** 303: go on at `location` with GET. */
export const seeOther = (location: string, headers: AnswerHeaders = {}): Answer => ({
  status: 303,
  headers: { location, 'cache-control': 'no-store', ...headers },
});

export const streamed = (contentType: string, source: Readable): Answer => ({
  status: 200,
  headers: { 'cache-control': 'no-store' },
  stream: { contentType, source },
});
