import { Readable } from 'node:stream';
import type { Caller } from '../../domain/shared/caller.ts';
import { partsForCurrentUser } from '../../platform/connectionUser.ts';
import type { SlotHolder, Slots } from '../../platform/slots.ts';
import type { SharedContent } from './sharedContent.ts';

export type ResponseHeaders = Record<string, string | string[]>;

/**
 * The response of a route: no body, a JSON body, its text if that is already made, one that all responses share,
 * or a stream.
 */
export type HttpResponse = {
  status: number;
  headers: ResponseHeaders;
  body?: unknown;
  json?: string;
  document?: SharedContent;
  stream?: {
    contentType: string;
    source: Readable;
    filename?: string;
    /** Gets the caller with its current rights, at intervals. An error ends the stream. */
    recheck?(caller: Caller): void;
  };
  /** The body has a secret that is shown only once: it is not stored for an `Idempotency-Key`. */
  containsSecret?: boolean;
  /** What of the body its entity tag is made of, where a part runs with the clock. */
  taggedAs?: unknown;
  /** A list whose query has chosen the fields of its records. */
  choosesFields?: boolean;
};

/** 200 with a JSON body. */
export const ok = (body: unknown, headers: ResponseHeaders = {}): HttpResponse => ({
  status: 200,
  headers,
  body,
});

/** 201: the record at `location` was created. */
export const created = (
  location: string,
  body: unknown,
  headers: ResponseHeaders = {},
): HttpResponse => ({
  status: 201,
  headers: { location, ...headers },
  body,
});

/** 202: processing continues after the response; `location` shows it. */
export const accepted = (location: string, body: unknown): HttpResponse => ({
  status: 202,
  headers: { location },
  body,
});

/** 204: done; the response has no body. */
export const noContent = (headers: ResponseHeaders = {}): HttpResponse => ({
  status: 204,
  headers,
});

/** 303: the client continues with GET at `location`. */
export const seeOther = (location: string, headers: ResponseHeaders = {}): HttpResponse => ({
  status: 303,
  headers: { location, 'cache-control': 'no-store', ...headers },
});

/**
 * 200 with a text that is made while it is sent, for browsers to save. It holds one of `slots`
 * until the stream is closed. Error: `too_many_requests`.
 */
export function exportResponse(
  slots: Slots,
  holder: SlotHolder,
  text: AsyncIterable<string>,
  {
    contentType,
    filename,
    recheck,
  }: { contentType: string; filename: string; recheck?(caller: Caller): void },
): HttpResponse {
  const release = slots.takeNow(holder);
  const source = Readable.from(partsForCurrentUser(text), {
    objectMode: false,
    highWaterMark: 65_536,
  });
  source.once('close', release);
  const { stream, ...response } = streamResponse(contentType, source, filename);
  return { ...response, ...(stream && { stream: { ...stream, ...(recheck && { recheck }) } }) };
}

/**
 * 200 with a streamed body, which caches must not store. With a file name, browsers save it
 * (RFC 6266).
 */
export const streamResponse = (
  contentType: string,
  source: Readable,
  filename?: string,
): HttpResponse => ({
  status: 200,
  headers: { 'cache-control': 'no-store' },
  stream: { contentType, source, ...(filename !== undefined && { filename }) },
});

/** Pages of the API have scripts of their own files only, and ask the API only. */
const PAGE_POLICY = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self' 'unsafe-inline'",
  "img-src 'self' data:",
  "connect-src 'self'",
  "base-uri 'none'",
  "form-action 'self'",
  "frame-ancestors 'none'",
].join('; ');

/** An answer that is a page: other answers have a policy under which nothing runs. */
export function pageResponse(html: string): HttpResponse {
  const { headers, ...response } = streamResponse('text/html', Readable.from([html]));
  return { ...response, headers: { ...headers, 'content-security-policy': PAGE_POLICY } };
}
