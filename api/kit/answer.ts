import type { Readable } from 'node:stream';

/** What a route answers. A stream is sent as it comes, with the content type given. */
export type Answer = {
  status: number;
  headers: Record<string, string>;
  body?: unknown;
  stream?: { contentType: string; source: Readable };
};

type Headers = Record<string, string>;

export const ok = (body: unknown, headers: Headers = {}): Answer => ({ status: 200, headers, body });

/** 201: the record at `location` was made. */
export const created = (location: string, body: unknown, headers: Headers = {}): Answer => ({
  status: 201,
  headers: { location, ...headers },
  body,
});

/** 202: the work goes on after the answer. */
export const accepted = (body: unknown, headers: Headers = {}): Answer => ({ status: 202, headers, body });

export const streamed = (contentType: string, source: Readable): Answer => ({
  status: 200,
  headers: { 'cache-control': 'no-store' },
  stream: { contentType, source },
});
