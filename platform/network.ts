import ipaddr from 'ipaddr.js';

/** Returns the network that rate limits count as one client: an IPv4 address, or an IPv6 /64. */
export function networkOf(address: string | null): string {
  if (address === null || !ipaddr.isValid(address.replace(/%.*$/, ''))) return 'unknown';
  const parsed = ipaddr.process(address.replace(/%.*$/, ''));
  return parsed.kind() === 'ipv4'
    ? parsed.toString()
    : `${parsed.toNormalizedString().split(':').slice(0, 4).join(':')}::/64`;
}

/** True for a CIDR. */
export const isNetwork = (text: string): boolean => ipaddr.isValidCIDR(text);

/** True for an address in one of these CIDRs. */
export function isInNetworks(address: string | null, cidrs: readonly string[]): boolean {
  const plain = address?.replace(/%.*$/, '') ?? '';
  if (!ipaddr.isValid(plain)) return false;
  const parsed = ipaddr.process(plain);
  return cidrs.some((cidr) => {
    const [network, length] = ipaddr.parseCIDR(cidr);
    return parsed.kind() === network.kind() && parsed.match(network, length);
  });
}

/** True when a CIDR is inside another one. */
export function isWithinNetwork(outer: string, inner: string): boolean {
  const [outerNetwork, outerLength] = ipaddr.parseCIDR(outer);
  const [network, length] = ipaddr.parseCIDR(inner);
  return (
    outerNetwork.kind() === network.kind() &&
    length >= outerLength &&
    network.match(outerNetwork, outerLength)
  );
}
