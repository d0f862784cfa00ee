import { networkInterfaces } from 'node:os';
import { parseAddress, withoutBrackets } from './network.ts';

export type OwnEndpoints = ReturnType<typeof createOwnEndpoints>;

type Endpoint = { host: string; port: number };

/** Where a process listens. `addresses`: those of its machine, if it listens at all of them. */
type ListeningAt = Endpoint & { addresses: string[] };

/** Where another process listens. */
type OtherProcess = { isSameMachine: boolean; endpoints: readonly ListeningAt[] };

const DEFAULT_PORTS: Readonly<Record<string, number>> = {
  'postgres:': 5_432,
  'postgresql:': 5_432,
  'http:': 80,
  'https:': 443,
};

/** The canonical form of an address; undefined for a name. */
const canonicalAddress = (host: string): string | undefined => parseAddress(host)?.toString();

const rangeOf = (host: string): string | undefined => parseAddress(host)?.range();

const interfaceAddresses = () =>
  Object.values(networkInterfaces()).flatMap((addresses) => addresses ?? []);

/** True for an address under which this machine reaches itself. */
function isLocal(host: string): boolean {
  const parsed = parseAddress(host);
  if (!parsed) return false;
  if (['loopback', 'unspecified'].includes(parsed.range())) return true;
  const text = parsed.toString();
  return interfaceAddresses().some((each) => canonicalAddress(each.address) === text);
}

/** The addresses under which other machines reach this one. */
const outerAddresses = (): string[] =>
  interfaceAddresses().flatMap(({ address, internal }) => (internal ? [] : [address]));

/** Where another process can be reached from this machine: another machine's loopback is not ours. */
function reachable({ isSameMachine, endpoints }: OtherProcess): Endpoint[] {
  if (isSameMachine) return [...endpoints];
  return endpoints.flatMap(({ host, port, addresses }) => {
    const range = rangeOf(host);
    if (range === 'unspecified') return addresses.map((address) => ({ host: address, port }));
    return range === 'loopback' || host === 'localhost' ? [] : [{ host, port }];
  });
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
 * The addresses at which Holdfast and its servers listen: the APIs and metrics of all processes, PostgreSQL and
 * Temporal. No request of a user may reach them, whatever networks are allowed.
 */
export function createOwnEndpoints(initial: readonly (Endpoint | undefined)[] = []) {
  const normalized = ({ host, port }: Endpoint) => ({ host: normalizedName(host), port });
  const servers = initial.flatMap((endpoint) => (endpoint ? [normalized(endpoint)] : []));
  const own: Endpoint[] = [];
  let others: Endpoint[] = [];
  return {
    /** Adds an endpoint of this process, once its port is known. */
    add: (endpoint: Endpoint): void => void own.push(normalized(endpoint)),

    /** Where this process listens, as the others have to know it. */
    listening: (): ListeningAt[] =>
      own.map(({ host, port }) => ({
        ...{ host, port },
        addresses: rangeOf(host) === 'unspecified' ? outerAddresses() : [],
      })),

    /** Says where the other processes of the installation listen. */
    setOthers(processes: readonly OtherProcess[]): void {
      others = processes.flatMap(reachable).map(normalized);
    },

    /** `host` is the name or address of a target. A name may still resolve to such an address. */
    includes(host: string, port: number): boolean {
      const samePort = [...servers, ...own, ...others].filter((each) => each.port === port);
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
