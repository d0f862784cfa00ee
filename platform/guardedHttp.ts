import { lookup as dnsLookup, type LookupAddress } from 'node:dns';
import { isIP, type LookupFunction } from 'node:net';
import ipaddr from 'ipaddr.js';
import { Agent, request as send } from 'undici';

export type OutboundRequest = {
  url: string;
  method: string;
  headers: Readonly<Record<string, string>>;
  body?: string;
  /** Limit of the whole exchange, connecting and reading included. */
  timeoutMs: number;
  signal?: AbortSignal;
};

export type OutboundAnswer = {
  status: number;
  headers: Record<string, string>;
  /** The first `MAX_BODY_BYTES` of the answer, as text. */
  body: string;
  truncated: boolean;
  durationMs: number;
  /** From `Retry-After`, when the answer has one. */
  retryAfterMs?: number;
};

export type OutboundErrorCode =
  | 'url_not_allowed' | 'address_not_allowed' | 'name_not_found' | 'connect_failed' | 'timed_out' | 'bad_answer';

/** `transient`: the same request may succeed later. The message holds no path, query or credentials. */
export class OutboundError extends Error {
  readonly code: OutboundErrorCode;
  readonly transient: boolean;

  constructor(code: OutboundErrorCode, message: string, transient: boolean) {
    super(message);
    this.name = 'OutboundError';
    this.code = code;
    this.transient = transient;
  }
}

export type GuardedHttp = ReturnType<typeof createGuardedHttp>;

const MAX_BODY_BYTES = 65_536;

/** Headers that belong to the connection or would let a caller speak for the server's name. */
const FORBIDDEN_HEADERS = new Set(['host', 'connection', 'content-length', 'transfer-encoding', 'upgrade', 'expect']);

const GLOBAL_UNICAST_6 = ipaddr.parseCIDR('2000::/3');

/** The address without an IPv4-mapped wrapping, so that ::ffff:127.0.0.1 is judged as 127.0.0.1. */
const unwrap = (address: string) => ipaddr.process(address.replace(/%.*$/, ''));

/**
 * The one client for everything that Holdfast sends out. Only http and https, no credentials in the URL, no
 * redirects; the address that is really connected to must be global unicast or inside `allow` (CIDRs), and it
 * is checked after the name was resolved, at the time of the connection, so that rebinding leads nowhere.
 */
export function createGuardedHttp({ allow }: { allow: readonly string[] }) {
  const allowed = allow.map((cidr) => ipaddr.parseCIDR(cidr));

  function permits(address: string): boolean {
    const parsed = unwrap(address);
    const exempt = allowed.some(([net, bits]) => parsed.kind() === net.kind() && parsed.match(net, bits));
    // Of IPv6 only 2000::/3 is handed out as global unicast (IANA); the library calls everything unknown unicast.
    const global = parsed.kind() === 'ipv4' || parsed.match(GLOBAL_UNICAST_6);
    return exempt || (global && parsed.range() === 'unicast');
  }

  /** Resolves a name for the connection and hands on only addresses that are permitted. */
  const lookup: LookupFunction = (hostname, options, callback) => {
    dnsLookup(hostname, { ...options, all: true }, (error, addresses: LookupAddress[]) => {
      if (error) return callback(error, []);
      if (!addresses.every(({ address }) => permits(address))) {
        return callback(new OutboundError('address_not_allowed', notAllowed(hostname), false), []);
      }
      if (options.all) return callback(null, addresses);
      const [first] = addresses;
      return first ? callback(null, first.address, first.family) : callback(new Error('no address'), []);
    });
  };

  const agent = new Agent({
    connect: { lookup, timeout: 10_000 },
    maxRedirections: 0,
    pipelining: 0,
    connections: 64,
    keepAliveTimeout: 4_000,
    maxHeaderSize: 32_768,
  } as ConstructorParameters<typeof Agent>[0]);

  function checkUrl(text: string): URL {
    const url = URL.parse(text);
    if (!url || !['http:', 'https:'].includes(url.protocol)) {
      throw new OutboundError('url_not_allowed', 'Only http and https URLs are allowed', false);
    }
    if (url.username !== '' || url.password !== '') {
      throw new OutboundError('url_not_allowed', 'A URL must not contain credentials', false);
    }
    // A literal never reaches the lookup above. URL has already brought every notation to the usual one.
    const host = url.hostname.replace(/^\[|\]$/g, '');
    if (isIP(host) && !permits(host)) throw new OutboundError('address_not_allowed', notAllowed(host), false);
    return url;
  }

  return {
    /** Error: `OutboundError` for a URL that no request will ever be sent to. */
    checkUrl,

    /** Sends one request. Errors: `OutboundError`; the abort reason of `signal`. */
    async request(outbound: OutboundRequest): Promise<OutboundAnswer> {
      const url = checkUrl(outbound.url);
      for (const name of Object.keys(outbound.headers)) {
        if (FORBIDDEN_HEADERS.has(name.toLowerCase())) {
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
        const { text, truncated } = await readStart(answer.body);
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
          throw new OutboundError('timed_out', `No complete answer within ${outbound.timeoutMs} ms`, true);
        }
        throw toOutboundError(error, url.hostname);
      }
    },

    close: () => agent.destroy(),
  };
}

const notAllowed = (host: string) => `${host} is not a public address, and no exception is configured for it`;

const flat = (value: string | string[] | undefined) => (Array.isArray(value) ? value.join(', ') : value);

/** Answer headers that help to understand an answer; the rest may hold secrets. */
const KEPT_HEADERS = ['content-type', 'content-length', 'date', 'etag', 'last-modified', 'retry-after', 'server'];

const pickHeaders = (headers: Record<string, string | string[] | undefined>) =>
  Object.fromEntries(KEPT_HEADERS.flatMap((name) => {
    const value = flat(headers[name]);
    return value === undefined ? [] : [[name, value]];
  }));

async function readStart(body: AsyncIterable<Buffer> & { destroy(): void; on(event: 'error', f: () => void): unknown }) {
  const chunks: Buffer[] = [];
  let size = 0;
  for await (const chunk of body) {
    chunks.push(chunk);
    size += chunk.length;
    if (size > MAX_BODY_BYTES) break;
  }
  const truncated = size > MAX_BODY_BYTES;
  if (truncated) {
    body.on('error', () => undefined);
    body.destroy();
  }
  return { text: Buffer.concat(chunks).subarray(0, MAX_BODY_BYTES).toString('utf8'), truncated };
}

/** `Retry-After` (RFC 9110, 10.2.3) in milliseconds: a number of seconds or a date. */
function parseRetryAfter(value: string | undefined): number | undefined {
  if (value === undefined) return undefined;
  const ms = /^\d+$/.test(value) ? Number(value) * 1_000 : Date.parse(value) - Date.now();
  return Number.isFinite(ms) ? Math.max(0, ms) : undefined;
}

function toOutboundError(error: unknown, host: string): OutboundError {
  if (error instanceof OutboundError) return error;
  const cause = error instanceof Error && error.cause instanceof OutboundError ? error.cause : undefined;
  if (cause) return cause;
  const { name, code = '' } = error as { name?: string; code?: string };
  if (code === 'ENOTFOUND' || code === 'EAI_AGAIN') {
    return new OutboundError('name_not_found', `The name ${host} does not resolve`, true);
  }
  if (code === 'UND_ERR_INVALID_ARG') {
    return new OutboundError('url_not_allowed', 'A header or the URL cannot be sent as it is', false);
  }
  if (name === 'HTTPParserError' || code === 'UND_ERR_HEADERS_OVERFLOW') {
    return new OutboundError('bad_answer', `${host} did not answer with valid HTTP`, true);
  }
  return new OutboundError('connect_failed', `Cannot reach ${host}${code === '' ? '' : ` (${code})`}`, true);
}
