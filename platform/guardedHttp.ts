import { isIP } from 'node:net';
import { Agent, request as send } from 'undici';
import {
  createAddressGuard,
  hostOf,
  notAllowed,
  OutboundError,
  type Resolve,
} from './addressGuard.ts';

export type OutboundRequest = {
  url: string;
  method: string;
  headers: Readonly<Record<string, string>>;
  body?: string;
  /** Limit of the whole exchange, connecting and reading included. */
  timeoutMs: number;
  /** How much of the answer is read; `MAX_BODY_BYTES` unless given. */
  maxBodyBytes?: number;
  signal?: AbortSignal;
};

export type OutboundAnswer = {
  status: number;
  headers: Record<string, string>;
  /** The first `maxBodyBytes` of the answer, as text. */
  body: string;
  truncated: boolean;
  durationMs: number;
  /** From `Retry-After`, when the answer has one. */
  retryAfterMs?: number;
};

export type GuardedHttp = ReturnType<typeof createGuardedHttp>;

const MAX_BODY_BYTES = 65_536;

const FETCH_TIMEOUT_MS = 10_000;

/** Headers that belong to the connection or would let a caller speak for the server's name. */
const FORBIDDEN_HEADERS = new Set([
  'host',
  'connection',
  'content-length',
  'transfer-encoding',
  'upgrade',
  'expect',
]);

/**
 * Headers with which a gateway says who asks and from where. A worker may be at an address that an API believes, this
 * one included, and nobody shall speak through it as somebody else.
 */
const GATEWAY_HEADERS = /^(x-service-|x-forwarded-|forwarded$|x-real-ip$)/i;

/**
 * The one client for everything that Holdfast sends out. Only http and https, no credentials in the URL, no
 * redirects; the address that is really connected to must be global unicast or inside `allow` (CIDRs), and it
 * is checked after the name was resolved, at the time of the connection, so that rebinding leads nowhere.
 */
export function createGuardedHttp({
  allow,
  resolve,
}: {
  allow: readonly string[];
  resolve?: Resolve;
}) {
  const { permits, lookup } = createAddressGuard(allow, resolve);

  const agent = new Agent({
    connect: { lookup, timeout: 10_000 },
    maxRedirections: 0,
    pipelining: 0,
    // Many share a host: who waits for one endpoint there must not hold up the others.
    connections: 512,
    keepAliveTimeout: 4_000,
    maxHeaderSize: 32_768,
  } as ConstructorParameters<typeof Agent>[0]);

  function checkUrl(text: string): URL {
    const url = URL.parse(text);
    if (!url || !['http:', 'https:'].includes(url.protocol)) {
      throw new OutboundError(
        'url_not_allowed',
        'Only valid http and https URLs are allowed',
        false,
      );
    }
    if (url.username !== '' || url.password !== '') {
      throw new OutboundError('url_not_allowed', 'A URL must not contain credentials', false);
    }
    // A literal never reaches the lookup above. URL has already brought every notation to the usual one.
    const host = hostOf(url);
    if (isIP(host) && !permits(host)) throw notAllowed(host);
    return url;
  }

  const client = {
    /** Error: `OutboundError` for a URL that no request will ever be sent to. */
    checkUrl,

    /** Sends one request. Errors: `OutboundError`; the abort reason of `signal`. */
    async request(outbound: OutboundRequest): Promise<OutboundAnswer> {
      const url = checkUrl(outbound.url);
      for (const name of Object.keys(outbound.headers)) {
        if (FORBIDDEN_HEADERS.has(name.toLowerCase()) || GATEWAY_HEADERS.test(name)) {
          throw new OutboundError('url_not_allowed', `The header ${name} cannot be set`, false);
        }
      }
      const timeout = AbortSignal.timeout(outbound.timeoutMs);
      const signal = outbound.signal ? AbortSignal.any([outbound.signal, timeout]) : timeout;
      const began = performance.now();
      try {
        const answer = await send(url, {
          method: outbound.method as 'GET',
          headers: outbound.headers,
          body: outbound.body ?? null,
          dispatcher: agent,
          signal,
          // The overall limit above is the only one.
          headersTimeout: 0,
          bodyTimeout: 0,
        });
        const { text, truncated } = await readStart(
          answer.body,
          outbound.maxBodyBytes ?? MAX_BODY_BYTES,
        );
        const retryAfterMs = parseRetryAfter(flat(answer.headers['retry-after']));
        return {
          status: answer.statusCode,
          headers: pickHeaders(answer.headers),
          body: text,
          truncated,
          durationMs: Math.round(performance.now() - began),
          ...(retryAfterMs !== undefined && { retryAfterMs }),
        };
      } catch (error) {
        if (outbound.signal?.aborted) throw outbound.signal.reason;
        if (timeout.aborted) {
          throw new OutboundError(
            'timed_out',
            `No complete answer within ${outbound.timeoutMs} ms`,
            true,
          );
        }
        throw toOutboundError(error, url.hostname);
      }
    },

    /**
     * The same in the shape of the Fetch standard, for libraries that bring their own protocol. An answer of more
     * than `MAX_BODY_BYTES` is an error.
     */
    async fetch(url: string, { method, headers, body, signal }: FetchOptions): Promise<Response> {
      const text =
        typeof body === 'string' || body instanceof URLSearchParams ? { body: String(body) } : {};
      const answer = await client.request({
        url,
        method,
        headers,
        ...text,
        timeoutMs: FETCH_TIMEOUT_MS,
        ...(signal && { signal }),
      });
      if (answer.truncated)
        throw new OutboundError(
          'bad_answer',
          `The answer has more than ${MAX_BODY_BYTES} bytes`,
          false,
        );
      const withoutBody = [101, 204, 205, 304].includes(answer.status);
      return new Response(withoutBody ? null : answer.body, {
        status: answer.status,
        headers: answer.headers,
      });
    },

    close: () => agent.destroy(),
  };
  return client;
}

type FetchOptions = {
  method: string;
  headers: Readonly<Record<string, string>>;
  body?: unknown;
  signal?: AbortSignal;
};

const flat = (value: string | string[] | undefined) =>
  Array.isArray(value) ? value.join(', ') : value;

/** Answer headers that help to understand an answer; the rest may hold secrets. */
const KEPT_HEADERS = [
  'content-type',
  'content-length',
  'date',
  'etag',
  'last-modified',
  'retry-after',
  'server',
];

const pickHeaders = (headers: Record<string, string | string[] | undefined>) =>
  Object.fromEntries(
    KEPT_HEADERS.flatMap((name) => {
      const value = flat(headers[name]);
      return value === undefined ? [] : [[name, value]];
    }),
  );

async function readStart(
  body: AsyncIterable<Buffer> & { destroy(): void; on(event: 'error', f: () => void): unknown },
  maxBytes: number,
) {
  const chunks: Buffer[] = [];
  let size = 0;
  for await (const chunk of body) {
    chunks.push(chunk);
    size += chunk.length;
    if (size > maxBytes) break;
  }
  const truncated = size > maxBytes;
  if (truncated) {
    body.on('error', () => undefined);
    body.destroy();
  }
  return { text: Buffer.concat(chunks).subarray(0, maxBytes).toString('utf8'), truncated };
}

/** `Retry-After` (RFC 9110, 10.2.3) in milliseconds: a number of seconds or a date. */
function parseRetryAfter(value: string | undefined): number | undefined {
  if (value === undefined) return undefined;
  const ms = /^\d+$/.test(value) ? Number(value) * 1_000 : Date.parse(value) - Date.now();
  return Number.isFinite(ms) ? Math.max(0, ms) : undefined;
}

function toOutboundError(error: unknown, host: string): OutboundError {
  if (error instanceof OutboundError) return error;
  const cause =
    error instanceof Error && error.cause instanceof OutboundError ? error.cause : undefined;
  if (cause) return cause;
  const { name, code = '' } = error as { name?: string; code?: string };
  if (code === 'ENOTFOUND' || code === 'EAI_AGAIN') {
    return new OutboundError('name_not_found', `The name ${host} does not resolve`, true);
  }
  if (code === 'UND_ERR_INVALID_ARG') {
    return new OutboundError(
      'url_not_allowed',
      'A header or the URL cannot be sent as it is',
      false,
    );
  }
  if (name === 'HTTPParserError' || code === 'UND_ERR_HEADERS_OVERFLOW') {
    return new OutboundError('bad_answer', `${host} did not answer with valid HTTP`, true);
  }
  if (code === 'UND_ERR_SOCKET')
    return new OutboundError(
      'bad_answer',
      `${host} closed the connection before it had answered`,
      true,
    );
  return new OutboundError(
    'connect_failed',
    `Cannot reach ${host}${code === '' ? '' : ` (${code})`}`,
    true,
  );
}
