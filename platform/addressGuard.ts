import { lookup as dnsLookup, type LookupAddress, type LookupAllOptions } from 'node:dns';
import type { LookupFunction } from 'node:net';
import ipaddr from 'ipaddr.js';

export type OutboundErrorCode =
  | 'url_not_allowed'
  | 'address_not_allowed'
  | 'host_not_found'
  | 'connection_failed'
  | 'timed_out'
  | 'invalid_response';

/**
 * `transient`: the same request may succeed later. The message has no path, query or credentials.
 */
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

export type AddressGuard = ReturnType<typeof createAddressGuard>;

/** Private networks, where organisations run directories and identity providers; not link-local. */
export const PRIVATE_NETWORKS = [
  '10.0.0.0/8',
  '172.16.0.0/12',
  '192.168.0.0/16',
  '100.64.0.0/10',
  '127.0.0.0/8',
  '::1/128',
  'fc00::/7',
] as const;

/** Metadata services, from which cloud machines read credentials; inside private networks. */
const METADATA_NETWORKS = [
  ipaddr.parseCIDR('fd00:ec2::/32'),
  ipaddr.parseCIDR('100.100.100.200/32'),
];

const GLOBAL_UNICAST_6 = ipaddr.parseCIDR('2000::/3');

/** Parses an address. An IPv4-mapped one becomes IPv4: ::ffff:127.0.0.1 is 127.0.0.1. */
const parseAddress = (address: string) => ipaddr.process(address.replace(/%.*$/, ''));

/** Returns the host of a URL as `net.isIP` expects it: an IPv6 address without brackets. */
export const hostOf = ({ hostname }: URL): string => hostname.replace(/^\[|\]$/g, '');

export const addressNotAllowed = (host: string): OutboundError =>
  new OutboundError(
    'address_not_allowed',
    `${host} is not a public address, and no exception is configured for it`,
    false,
  );

/** Resolves a name to addresses, as `dns.lookup` with `all` does. */
export type Resolve = (
  hostname: string,
  options: LookupAllOptions,
  callback: (error: NodeJS.ErrnoException | null, addresses: LookupAddress[]) => void,
) => void;

type LookupCallback = Parameters<Resolve>[2];

/**
 * Shares the result of a lookup in progress with every connection to the same name. Each lookup
 * occupies one of the few threads of the pool: a name server that does not answer must not block
 * all.
 */
function shareLookups(resolve: Resolve): Resolve {
  const pendingLookups = new Map<string, LookupCallback[]>();
  return (hostname, options, callback) => {
    const key = JSON.stringify([hostname, options.family ?? 0, options.hints ?? 0]);
    const pending = pendingLookups.get(key);
    if (pending) return void pending.push(callback);
    const callbacks = [callback];
    pendingLookups.set(key, callbacks);
    resolve(hostname, options, (error, addresses) => {
      pendingLookups.delete(key);
      for (const each of callbacks) each(error, addresses);
    });
  };
}

/**
 * Decides which addresses may be connected to: global unicast, and the networks in `allow` (CIDRs),
 * but never metadata services. `resolve` replaces `dns.lookup`.
 */
export function createAddressGuard(allow: readonly string[], resolve: Resolve = dnsLookup) {
  const resolveShared = shareLookups(resolve);
  const allowed = allow.map((cidr) => ipaddr.parseCIDR(cidr));

  function permits(address: string): boolean {
    const parsed = parseAddress(address);
    if (
      METADATA_NETWORKS.some(
        ([net, bits]) => parsed.kind() === net.kind() && parsed.match(net, bits),
      )
    )
      return false;
    const isExempt = allowed.some(
      ([net, bits]) => parsed.kind() === net.kind() && parsed.match(net, bits),
    );
    // IANA assigns global unicast addresses from 2000::/3 only; the library is less strict.
    const isGlobal = parsed.kind() === 'ipv4' || parsed.match(GLOBAL_UNICAST_6);
    return isExempt || (isGlobal && parsed.range() === 'unicast');
  }

  /**
   * Resolves a name for a connection. Error: `address_not_allowed` if any address is not permitted.
   */
  const lookup: LookupFunction = (hostname, options, callback) => {
    resolveShared(hostname, { ...options, all: true }, (error, addresses) => {
      if (error) return callback(error, []);
      if (!addresses.every(({ address }) => permits(address)))
        return callback(addressNotAllowed(hostname), []);
      if (options.all) return callback(null, addresses);
      const [first] = addresses;
      return first
        ? callback(null, first.address, first.family)
        : callback(new Error('no address'), []);
    });
  };

  return { permits, lookup };
}
