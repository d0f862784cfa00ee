import type { Socket } from 'node:net';
import { LRUCache } from 'lru-cache';
import { buildConnector, Client } from 'undici';
import {
  createAddressGuard,
  hostOf,
  portOf,
  OutboundError,
  type GuardOptions,
} from './addressGuard.ts';
import { orAborted } from './within.ts';

export type OutboundRequest = {
  url: string;
  method: string;
  headers: Readonly<Record<string, string>>;
  body?: string;
  /** Time limit of the whole exchange, including connecting and reading. */
  timeoutMs: number;
  /** Maximum size of the body that is read; `MAX_BODY_BYTES` by default. */
  maxBodyBytes?: number;
  signal?: AbortSignal;
};

export type OutboundResponse = {
  status: number;
  headers: Record<string, string>;
  /** The first `maxBodyBytes` of the body, as text. */
  body: string;
  truncated: boolean;
  durationMs: number;
  /** From `Retry-After`, if the response has it. */
  retryAfterMs?: number;
};

export type GuardedHttp = ReturnType<typeof createGuardedHttp>;

const MAX_BODY_BYTES = 65_536;

const FETCH_TIMEOUT_MS = 10_000;
const CONNECT_TIMEOUT_MS = 10_000;

/** Headers that the HTTP client controls, and `Proxy`, which CGI turns into a variable. */
const CONTROLLED_HEADERS = new Set([
  'host',
  'connection',
  'keep-alive',
  'proxy-connection',
  'content-length',
  'transfer-encoding',
  'te',
  'trailer',
  'upgrade',
  'expect',
  'proxy',
]);

/**
 * Headers with which gateways state the identity and address of a caller. A worker may have an
 * address that an API trusts, so a request from it must not carry headers that a user has chosen.
 */
const GATEWAY_HEADERS =
  /^(x-service|x-service-.*|x-forwarded|x-forwarded-.*|x-original-.*|x-rewrite-url|forwarded|via|(x-real|x-client|x-cluster-client|true-client|cf-connecting|fastly-client)-ip)$/;

/**
 * True for a header that no user may choose. Servers fold names: CGI and its successors make `_` of
 * every character but letters and digits, so `X_Service_Actor_Id` may arrive as a gateway's header.
 */
export function isReservedHeader(name: string): boolean {
  const folded = name.toLowerCase().replaceAll(/[^a-z0-9]/g, '-');
  return CONTROLLED_HEADERS.has(folded) || GATEWAY_HEADERS.test(folded);
}

/** The types of the library omit that a connector returns its socket. */
type Connector = (...args: Parameters<buildConnector.connector>) => Socket;

/** Ports whose connectors are kept. A connector remembers TLS sessions. */
const MAX_CONNECTORS = 100;

/**
 * Creates the HTTP client for all outbound requests: http and https only, no credentials in URLs,
 * no redirects. The connected address must be global unicast or inside `allow`, and none of
 * Holdfast's own. It is checked when the connection is made, after name resolution, which defeats
 * DNS rebinding.
 */
export function createGuardedHttp(options: GuardOptions) {
  const { requirePermitted, lookupFor } = createAddressGuard(options);
  const connectors = new LRUCache<number, Connector>({
    max: MAX_CONNECTORS,
    memoMethod: (port) =>
      buildConnector({
        lookup: lookupFor(port),
        timeout: CONNECT_TIMEOUT_MS,
        allowH2: false,
      }) as Connector,
  });

  const openClients = new Set<Client>();

  /**
   * One request on a connection of its own, so that a host that does not answer delays no other
   * request. Error: the reason of `signal`, whatever the connection is waiting for then.
   */
  async function exchange(
    url: URL,
    { method, headers, body, maxBodyBytes = MAX_BODY_BYTES }: OutboundRequest,
    signal: AbortSignal,
  ) {
    signal.throwIfAborted();
    let socket: Socket | undefined;
    const client = new Client(url.origin, {
      connect: (target, callback) => {
        socket = connectors.memo(portOf(target))(target, callback);
      },
      allowH2: false,
      pipelining: 0,
      maxHeaderSize: 32_768,
      // `signal` is the only limit.
      headersTimeout: 0,
      bodyTimeout: 0,
    });
    openClients.add(client);
    const run = async () => {
      const response = await client.request({
        path: url.pathname + url.search,
        method,
        headers,
        body: body ?? null,
      });
      return { ...response, ...(await readLimited(response.body, maxBodyBytes)) };
    };
    try {
      return await orAborted(signal, run());
    } finally {
      openClients.delete(client);
      // The client does not close a connection that is still being made.
      socket?.destroy();
      void client.destroy();
    }
  }

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
    // `URL` has normalised the notation of an address.
    requirePermitted(hostOf(url), portOf(url));
    return url;
  }

  const client = {
    /** Parses a URL. Error: `OutboundError` if requests to it are never allowed. */
    checkUrl,

    /** Sends one request. Errors: `OutboundError`; the abort reason of `signal`. */
    async request(outbound: OutboundRequest): Promise<OutboundResponse> {
      const url = checkUrl(outbound.url);
      for (const name of Object.keys(outbound.headers)) {
        if (isReservedHeader(name))
          throw new OutboundError('url_not_allowed', `The header ${name} cannot be set`, false);
      }
      const timeout = AbortSignal.timeout(outbound.timeoutMs);
      const signal = outbound.signal ? AbortSignal.any([outbound.signal, timeout]) : timeout;
      const startedAt = performance.now();
      try {
        const response = await exchange(url, outbound, signal);
        const retryAfterMs = parseRetryAfter(joinHeader(response.headers['retry-after']));
        return {
          status: response.statusCode,
          headers: pickHeaders(response.headers),
          body: response.text,
          truncated: response.truncated,
          durationMs: Math.round(performance.now() - startedAt),
          ...(retryAfterMs !== undefined && { retryAfterMs }),
        };
      } catch (error) {
        if (outbound.signal?.aborted) throw outbound.signal.reason;
        if (timeout.aborted) {
          throw new OutboundError(
            'timed_out',
            `No complete response within ${outbound.timeoutMs} ms`,
            true,
          );
        }
        throw toOutboundError(error, url.hostname);
      }
    },

    /**
     * The client as a `fetch` function, for protocol libraries. Error: `invalid_response` if the
     * body is larger than `MAX_BODY_BYTES`.
     */
    async fetch(url: string, { method, headers, body, signal }: FetchOptions): Promise<Response> {
      const bodyOption =
        typeof body === 'string' || body instanceof URLSearchParams ? { body: String(body) } : {};
      const response = await client.request({
        url,
        method,
        headers,
        ...bodyOption,
        timeoutMs: FETCH_TIMEOUT_MS,
        ...(signal && { signal }),
      });
      if (response.truncated)
        throw new OutboundError(
          'invalid_response',
          `The response is larger than ${MAX_BODY_BYTES} bytes`,
          false,
        );
      const isBodyless = [101, 204, 205, 304].includes(response.status);
      return new Response(isBodyless ? null : response.body, {
        status: response.status,
        headers: response.headers,
      });
    },

    close: () => Promise.all([...openClients].map((each) => each.destroy())),
  };
  return client;
}

type FetchOptions = {
  method: string;
  headers: Readonly<Record<string, string>>;
  body?: unknown;
  signal?: AbortSignal;
};

const joinHeader = (value: string | string[] | undefined) =>
  Array.isArray(value) ? value.join(', ') : value;

/** Response headers that are recorded; others may have secrets. */
const RECORDED_HEADERS = [
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
    RECORDED_HEADERS.flatMap((name) => {
      const value = joinHeader(headers[name]);
      return value === undefined ? [] : [[name, value]];
    }),
  );

async function readLimited(
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

/** Parses `Retry-After` (RFC 9110, 10.2.3), seconds or a date, to milliseconds. */
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
    return new OutboundError('host_not_found', `The name ${host} does not resolve`, true);
  }
  if (code === 'UND_ERR_INVALID_ARG') {
    return new OutboundError('url_not_allowed', 'The URL or a header is not valid', false);
  }
  if (name === 'HTTPParserError' || code === 'UND_ERR_HEADERS_OVERFLOW') {
    return new OutboundError(
      'invalid_response',
      `${host} did not send a valid HTTP response`,
      true,
    );
  }
  if (code === 'UND_ERR_SOCKET')
    return new OutboundError(
      'invalid_response',
      `${host} closed the connection before it responded`,
      true,
    );
  return new OutboundError(
    'connection_failed',
    `Cannot reach ${host}${code === '' ? '' : ` (${code})`}`,
    true,
  );
}
