import { lookup as dnsLookup, type LookupAddress, type LookupAllOptions } from 'node:dns';
import type { LookupFunction } from 'node:net';
import ipaddr from 'ipaddr.js';

export type OutboundErrorCode =
  | 'url_not_allowed'
  | 'address_not_allowed'
  | 'name_not_found'
  | 'connect_failed'
  | 'timed_out'
  | 'bad_answer';

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

export type AddressGuard = ReturnType<typeof createAddressGuard>;

/** Where directories and identity providers of an organisation usually live. Link-local addresses are not among them. */
export const PRIVATE_NETWORKS = [
  '10.0.0.0/8',
  '172.16.0.0/12',
  '192.168.0.0/16',
  '100.64.0.0/10',
  '127.0.0.0/8',
  '::1/128',
  'fc00::/7',
] as const;

/** Where clouds tell a machine its credentials, in networks that are private ones otherwise. */
const METADATA = [ipaddr.parseCIDR('fd00:ec2::/32'), ipaddr.parseCIDR('100.100.100.200/32')];

const GLOBAL_UNICAST_6 = ipaddr.parseCIDR('2000::/3');

/** The address without an IPv4-mapped wrapping, so that ::ffff:127.0.0.1 is judged as 127.0.0.1. */
const unwrap = (address: string) => ipaddr.process(address.replace(/%.*$/, ''));

/** The host of a URL as sockets and `net.isIP` take it: an IPv6 address without its brackets. */
export const hostOf = ({ hostname }: URL): string => hostname.replace(/^\[|\]$/g, '');

export const notAllowed = (host: string): OutboundError =>
  new OutboundError(
    'address_not_allowed',
    `${host} is not a public address, and no exception is configured for it`,
    false,
  );

/** Finds the addresses of a name, as `dns.lookup` with `all` does. */
export type Resolve = (
  hostname: string,
  options: LookupAllOptions,
  callback: (error: NodeJS.ErrnoException | null, addresses: LookupAddress[]) => void,
) => void;

type Waiting = Parameters<Resolve>[2];

/**
 * Connections to one name that begin while it is looked up share the answer. A look-up takes one of the few threads
 * that the process has for them: a name server that does not answer shall not take them all.
 */
function shared(resolve: Resolve): Resolve {
  const underWay = new Map<string, Waiting[]>();
  return (hostname, options, callback) => {
    const key = JSON.stringify([hostname, options.family ?? 0, options.hints ?? 0]);
    const waiting = underWay.get(key);
    if (waiting) return void waiting.push(callback);
    const callbacks = [callback];
    underWay.set(key, callbacks);
    resolve(hostname, options, (error, addresses) => {
      underWay.delete(key);
      for (const each of callbacks) each(error, addresses);
    });
  };
}

/**
 * Decides which addresses may be connected to: global unicast, and what is inside `allow` (CIDRs). `resolve` is how
 * names are looked up.
 */
export function createAddressGuard(allow: readonly string[], resolve: Resolve = dnsLookup) {
  const look = shared(resolve);
  const allowed = allow.map((cidr) => ipaddr.parseCIDR(cidr));

  function permits(address: string): boolean {
    const parsed = unwrap(address);
    if (METADATA.some(([net, bits]) => parsed.kind() === net.kind() && parsed.match(net, bits)))
      return false;
    const exempt = allowed.some(
      ([net, bits]) => parsed.kind() === net.kind() && parsed.match(net, bits),
    );
    // Of IPv6 only 2000::/3 is handed out as global unicast (IANA); the library calls everything unknown unicast.
    const global = parsed.kind() === 'ipv4' || parsed.match(GLOBAL_UNICAST_6);
    return exempt || (global && parsed.range() === 'unicast');
  }

  /** Resolves a name for the connection itself, and hands on only addresses that are permitted. */
  const lookup: LookupFunction = (hostname, options, callback) => {
    look(hostname, { ...options, all: true }, (error, addresses) => {
      if (error) return callback(error, []);
      if (!addresses.every(({ address }) => permits(address)))
        return callback(notAllowed(hostname), []);
      if (options.all) return callback(null, addresses);
      const [first] = addresses;
      return first
        ? callback(null, first.address, first.family)
        : callback(new Error('no address'), []);
    });
  };

  return { permits, lookup };
}
