import { isIP } from 'node:net';
import ipaddr from 'ipaddr.js';
import type { Context } from 'koa';
import { parseAddress } from '../../platform/network.ts';

export type ClientAddress = ReturnType<typeof createClientAddress>;

const MAX_FORWARDED_HOPS = 20;

/** Hosts under which this machine reaches itself, as URLs have them. */
const LOOPBACK = /^(localhost|127(\.\d{1,3}){3}|\[::1\])$/;

/** The media types that a form of a page can send, and none. */
const SIMPLE_TYPE =
  /^\s*(|(application\/x-www-form-urlencoded|multipart\/form-data|text\/plain)\b.*)$/i;

/** True for two origins of one server on this machine: http://localhost:8080, http://127.0.0.1:8080. */
const isSameLoopback = (one: URL, other: URL): boolean =>
  one.port === other.port &&
  [one, other].every((url) => url.protocol === 'http:' && LOOPBACK.test(url.hostname));

/** Some gateways write `203.0.113.1:4455` or `[2001:db8::1]:4455`. */
const withoutPort = (entry: string): string =>
  entry
    .trim()
    .replace(/^(\d+(?:\.\d+){3}):\d+$/, '$1')
    .replace(/^\[(.+)\](?::\d+)?$/, '$1');

/** Returns the function that decides whether an address is that of a trusted gateway. */
export function createIsTrusted(trustedGateways: readonly string[]) {
  const trustedNetworks = trustedGateways.map((cidr) => ipaddr.parseCIDR(cidr));
  return (address: string | undefined): boolean => {
    const parsed = parseAddress(address ?? '');
    return (
      parsed !== undefined &&
      trustedNetworks.some(([net, bits]) => parsed.kind() === net.kind() && parsed.match(net, bits))
    );
  };
}

/** Finds the address of a client. `X-Forwarded-For` is read from trusted gateways only. */
export function createClientAddress({
  trustedGateways,
  gatewayHosts = [],
  publicUrl,
}: {
  trustedGateways: readonly string[];
  /** The hosts under which gateways send identity headers; any if there are none. */
  gatewayHosts?: readonly string[];
  publicUrl: string | undefined;
}) {
  const isTrusted = createIsTrusted(trustedGateways);

  /**
   * Returns the origin under which browsers reach this API: `HOLDFAST_PUBLIC_URL`, else the address
   * of the socket. The `Host` header is not used, since clients can forge it.
   */
  function publicOriginOf(ctx: Context): string {
    if (publicUrl !== undefined) return publicUrl;
    const { localAddress = '127.0.0.1', localPort = 80 } = ctx.req.socket;
    const address = parseAddress(localAddress);
    const host = address?.kind() === 'ipv6' ? `[${address.toString()}]` : address?.toString();
    return new URL(`http://${host ?? localAddress}:${localPort}`).origin;
  }

  /** What the `Host` header names. */
  function namedBy(ctx: Context): URL | null {
    const host = ctx.get('host');
    return /[\s/?#@\\]/.test(host) ? null : URL.parse(`http://${host}`);
  }

  /** The origin that the `Host` header names, if it is another loopback address of our origin. */
  function otherLoopbackOriginOf(ctx: Context): string | undefined {
    const own = publicOriginOf(ctx);
    const named = namedBy(ctx);
    return named && named.origin !== own && isSameLoopback(named, new URL(own))
      ? named.origin
      : undefined;
  }

  const isOwnOrigin = (ctx: Context, origin: string): boolean =>
    origin === publicOriginOf(ctx) || origin === otherLoopbackOriginOf(ctx);

  const expectedHosts = new Set([
    ...gatewayHosts,
    ...(publicUrl === undefined ? [] : [new URL(publicUrl).hostname]),
  ]);

  return {
    isTrusted,
    publicOriginOf,
    otherLoopbackOriginOf,

    /**
     * True for our own origin in an `Origin` header. On this machine, that is also the loopback
     * address that the page was opened under: the browser has sent the request to the same one.
     */
    isOwnOrigin,

    /**
     * True when the `Host` header names one of the hosts of gateways. A page whose own name is changed to
     * the address of this machine (DNS rebinding) sends requests that are of the same origin to its browser.
     */
    isForGatewayHost: (ctx: Context): boolean =>
      gatewayHosts.length === 0 || expectedHosts.has(namedBy(ctx)?.hostname ?? ''),

    /**
     * True for a request that the page of another site can make a browser send without asking first (CORS):
     * a POST without a body, or with that of a form. Those with JSON are asked about.
     */
    isForgeable(ctx: Context): boolean {
      if (ctx.method !== 'POST' || !SIMPLE_TYPE.test(ctx.get('content-type'))) return false;
      const site = ctx.get('sec-fetch-site');
      if (site !== '') return site !== 'same-origin' && site !== 'none';
      const origin = ctx.get('origin');
      const isSameHost = URL.parse(origin)?.host === namedBy(ctx)?.host;
      return origin !== '' && !isSameHost && !isOwnOrigin(ctx, origin);
    },

    /**
     * Returns the address of the client. Behind a trusted gateway that is the last entry of
     * `X-Forwarded-For` that is not a trusted gateway: clients can forge the entries before it.
     */
    addressOf(ctx: Context): string | null {
      const direct = ctx.req.socket.remoteAddress;
      if (direct === undefined || !isTrusted(direct)) return direct ?? null;
      const forwarded = ctx
        .get('x-forwarded-for')
        .split(',')
        .map(withoutPort)
        .slice(-MAX_FORWARDED_HOPS)
        .reverse();
      for (const entry of forwarded) {
        if (isIP(entry) === 0) break;
        if (!isTrusted(entry)) return entry;
      }
      return direct;
    },
  };
}
