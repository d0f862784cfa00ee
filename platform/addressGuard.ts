import { lookup as dnsLookup, type LookupAddress, type LookupAllOptions } from 'node:dns';
import { isIP, type LookupFunction } from 'node:net';
import ipaddr from 'ipaddr.js';
import { assertDefined } from '../domain/shared/assert.ts';
import { parseAddress, readNetwork, withoutBrackets, type ParsedAddress } from './network.ts';
import { createOwnEndpoints, type OwnEndpoints } from './ownEndpoints.ts';

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

/**
 * Link-local networks and the other addresses where clouds run services for their machines, which read
 * credentials there. No exception opens them.
 */
const CLOUD_NETWORKS = [
  '169.254.0.0/16',
  'fe80::/10',
  // Azure; a public address by its number.
  '168.63.129.16/32',
  // Alibaba Cloud, Oracle Cloud.
  '100.100.100.200/32',
  '192.0.0.192/32',
  'fd00:c1::a9fe:a9fe/128',
  // AWS, Google Cloud.
  'fd00:ec2::/32',
  'fd20:ce::/32',
].map((network) => ipaddr.parseCIDR(network));

/** Where IPv6 addresses that gateways translate have the IPv4 address that they lead to, in bytes. */
const TRANSLATED: Readonly<Record<string, number>> = { rfc6052: 12, rfc6145: 12, '6to4': 2 };

/** The address that a connection to this one leads to. */
function destinationOf(parsed: ParsedAddress): ParsedAddress {
  const start = TRANSLATED[parsed.range()];
  if (start === undefined) return parsed;
  return ipaddr.fromByteArray(parsed.toByteArray().slice(start, start + 4));
}

const GLOBAL_UNICAST_6 = ipaddr.parseCIDR('2000::/3');

/** Returns the host of a URL as `net.isIP` expects it: an IPv6 address without brackets. */
export const hostOf = ({ hostname }: URL): string => withoutBrackets(hostname);

const PORTS: Readonly<Record<string, number>> = {
  'http:': 80,
  'https:': 443,
  'ldap:': 389,
  'ldaps:': 636,
};

/** Returns the port that a URL leads to. */
export const portOf = ({ protocol, port = '' }: { protocol: string; port?: string }): number =>
  port === '' ? (PORTS[protocol] ?? 0) : Number(port);

const addressNotAllowed = (host: string, reason: string): OutboundError =>
  new OutboundError('address_not_allowed', `${host} is not a public address, and ${reason}`, false);

const NEVER = 'no exception opens link-local addresses and services of clouds';
const NO_EXCEPTION = 'no exception is configured for it';

/** Resolves a name to addresses, as `dns.lookup` with `all` does. */
export type Resolve = (
  hostname: string,
  options: LookupAllOptions,
  callback: (error: NodeJS.ErrnoException | null, addresses: LookupAddress[]) => void,
) => void;

type LookupCallback = Parameters<Resolve>[2];

const withCode = (code: string, message: string): NodeJS.ErrnoException =>
  Object.assign(new Error(message), { code });

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
    const finish: LookupCallback = (error, addresses) => {
      pendingLookups.delete(key);
      for (const each of callbacks.splice(0)) each(error, addresses);
    };
    try {
      resolve(hostname, options, finish);
    } catch (error) {
      // The resolver refuses the name itself.
      finish(error as NodeJS.ErrnoException, []);
    }
  };
}

/** A network, optionally with the only ports that are allowed in it. */
type AllowedNetwork = { network: ReturnType<typeof ipaddr.parseCIDR>; ports: [number, number] };

const ALLOWED = /^\[?([^[\]]+?)\]?(?::(\d{1,5})(?:-(\d{1,5}))?)?$/;

const NO_ALLOWED_NETWORK =
  'is not a CIDR such as 10.0.0.0/8, or a CIDR with ports such as 127.0.0.1/32:9000-9099 or [::1/128]:9000';

/** The CIDR of an entry, and its ports if it names some. Undefined for any other text. */
function splitAllowed(
  text: string,
): { cidr: string; ports: [number, number] | undefined } | undefined {
  const [, cidr, first, last = first] = ALLOWED.exec(text) ?? [];
  // Without brackets it would be unclear where an IPv6 network ends.
  if (cidr === undefined || first === undefined || cidr.includes(':') !== text.startsWith('['))
    return { cidr: text, ports: undefined };
  const ports: [number, number] = [Number(first), Number(last)];
  return ports[0] <= ports[1] && ports[1] <= 65_535 ? { cidr, ports } : undefined;
}

/**
 * Reads an entry of `HOLDFAST_OUTBOUND_ALLOW`, a CIDR or a CIDR with a port or ports: `10.0.0.0/8`,
 * `127.0.0.1/32:9000`, `[::1/128]:9000-9099`. Returns it in canonical form, or why it is refused.
 */
export function readAllowedNetwork(text: string): ReturnType<typeof readNetwork> {
  const parts = splitAllowed(text);
  if (!parts?.cidr.includes('/')) return { problem: NO_ALLOWED_NETWORK };
  const read = readNetwork(parts.cidr);
  if ('problem' in read) return read;
  const { network } = read;
  if (!parts.ports) return { network };
  const host = network.includes(':') ? `[${network}]` : network;
  return { network: `${host}:${parts.ports.join('-')}` };
}

function parseAllowed(text: string): AllowedNetwork {
  const read = readAllowedNetwork(text);
  if ('problem' in read) throw new Error(`${text} ${read.problem}`);
  const { cidr, ports = [0, 65_535] } = assertDefined(
    splitAllowed(read.network),
    'allowed network',
  );
  return { network: ipaddr.parseCIDR(cidr), ports };
}

const inside = (parsed: ParsedAddress, [net, bits]: AllowedNetwork['network']): boolean =>
  parsed.kind() === net.kind() && parsed.match(net, bits);

const isOfCloud = (parsed: ParsedAddress): boolean => {
  const destination = destinationOf(parsed);
  return CLOUD_NETWORKS.some((network) => inside(destination, network));
};

export type GuardOptions = {
  /** Networks that are not public, as `readAllowedNetwork` reads them. */
  allow: readonly string[];
  ownEndpoints?: OwnEndpoints;
  /** Replaces `dns.lookup`. */
  resolve?: Resolve;
};

/**
 * Decides which addresses may be connected to: global unicast, and the networks in `allow`, but
 * never `CLOUD_NETWORKS` and Holdfast's own endpoints.
 */
export function createAddressGuard({
  allow,
  ownEndpoints = createOwnEndpoints(),
  resolve = dnsLookup,
}: GuardOptions) {
  const resolveShared = shareLookups(resolve);
  const allowed = allow.map(parseAllowed);

  /** Why addresses of a host, some of which are not permitted, are refused. */
  function refusal(host: string, addresses: readonly string[], port: number): OutboundError {
    const parsedOnes = addresses.flatMap((each) => parseAddress(each) ?? []);
    if (parsedOnes.some(isOfCloud)) return addressNotAllowed(host, NEVER);
    const isExempt = (address: string): boolean => {
      const parsed = parseAddress(address);
      return parsed !== undefined && allowed.some(({ network }) => inside(parsed, network));
    };
    const hasException = addresses.some(
      (address) =>
        !permits(address, port) && isExempt(address) && !ownEndpoints.includes(address, port),
    );
    return addressNotAllowed(
      host,
      hasException ? `the exception for it does not include port ${port}` : NO_EXCEPTION,
    );
  }

  /**
   * Error: `address_not_allowed` unless all addresses of a host may be connected to. A literal address is never passed
   * to `lookupFor`, so it is what is checked by default.
   */
  function requirePermitted(
    host: string,
    port: number,
    addresses: readonly string[] = isIP(host) === 0 ? [] : [host],
  ): void {
    if (!addresses.every((address) => permits(address, port))) throw refusal(host, addresses, port);
  }

  /** Whether an address may be connected to at a port. */
  function permits(address: string, port: number): boolean {
    const parsed = parseAddress(address);
    if (!parsed || isOfCloud(parsed)) return false;
    if (ownEndpoints.includes(address, port)) return false;
    const isExempt = allowed.some(
      ({ network, ports: [first, last] }) =>
        inside(parsed, network) && first <= port && port <= last,
    );
    // IANA assigns global unicast addresses from 2000::/3 only; the library is less strict.
    const isGlobal = parsed.kind() === 'ipv4' || parsed.match(GLOBAL_UNICAST_6);
    return isExempt || (isGlobal && parsed.range() === 'unicast');
  }

  /**
   * Returns the function that resolves a name for a connection to `port`. Errors:
   * `address_not_allowed` if any address is not permitted; `ENOTFOUND` if there is none.
   */
  const lookupFor =
    (port: number): LookupFunction =>
    (hostname, options, callback) => {
      if (ownEndpoints.includes(hostname, port)) {
        callback(addressNotAllowed(hostname, NO_EXCEPTION), []);
        return;
      }
      resolveShared(hostname, { ...options, all: true }, (error, addresses) => {
        if (error) return callback(error, []);
        const [first] = addresses;
        // Node ends the process with an uncaught error when a lookup succeeds without an address.
        if (!first) return callback(withCode('ENOTFOUND', `${hostname} has no address`), []);
        const found = addresses.map(({ address }) => address);
        if (!found.every((address) => permits(address, port)))
          return callback(refusal(hostname, found, port), []);
        if (options.all) return callback(null, addresses);
        return callback(null, first.address, first.family);
      });
    };

  return { permits, requirePermitted, lookupFor };
}
