import { networkInterfaces } from 'node:os';
import { parseAddress, withoutBrackets } from './network.ts';

export type OwnEndpoints = ReturnType<typeof createOwnEndpoints>;

type Endpoint = { host: string; port: number };

const DEFAULT_PORTS: Readonly<Record<string, number>> = {
  'postgres:': 5_432,
  'postgresql:': 5_432,
  'http:': 80,
  'https:': 443,
};

/** The canonical form of an address; undefined for a name. */
const canonicalAddress = (host: string): string | undefined => parseAddress(host)?.toString();

/** True for an address under which this machine reaches itself. */
function isLocal(host: string): boolean {
  const parsed = parseAddress(host);
  if (!parsed) return false;
  if (['loopback', 'unspecified'].includes(parsed.range())) return true;
  const text = parsed.toString();
  return Object.values(networkInterfaces())
    .flatMap((addresses) => addresses ?? [])
    .some((each) => canonicalAddress(each.address) === text);
}

const normalizedName = (host: string) => withoutBrackets(host.toLowerCase()).replace(/\.$/, '');

/**
 * The endpoint of a URL, or of `host:port`; undefined if it has no port. A server that is reached
 * through a socket file runs on this machine, and may also listen on its port.
 */
export function endpointOf(text: string): Endpoint | undefined {
  const url = URL.parse(text.includes('://') ? text : `tcp://${text}`);
  const port = url && (url.port === '' ? DEFAULT_PORTS[url.protocol] : Number(url.port));
  if (!url || !port) return undefined;
  return { host: /^(%2f|$)/i.test(url.hostname) ? 'localhost' : url.hostname, port };
}

/**
 * The addresses at which Holdfast and its servers listen: the API, its metrics, PostgreSQL and
 * Temporal. No request of a user may reach them, whatever networks are allowed.
 */
export function createOwnEndpoints(initial: readonly (Endpoint | undefined)[] = []) {
  const endpoints: Endpoint[] = [];
  const add = ({ host, port }: Endpoint) =>
    void endpoints.push({ host: normalizedName(host), port });
  for (const endpoint of initial) if (endpoint) add(endpoint);
  return {
    /** Adds an endpoint of this process, once its port is known. */
    add,

    /** `host` is the name or address of a target. A name may still resolve to such an address. */
    includes(host: string, port: number): boolean {
      const samePort = endpoints.filter((each) => each.port === port);
      if (samePort.length === 0) return false;
      const name = normalizedName(host);
      if (samePort.some((each) => each.host === name)) return true;
      if (isLocal(host)) return samePort.some((each) => isOwnHost(each.host));
      const text = canonicalAddress(host);
      return text !== undefined && samePort.some((each) => canonicalAddress(each.host) === text);
    },
  };
}

const isOwnHost = (host: string): boolean => host === 'localhost' || isLocal(host);
