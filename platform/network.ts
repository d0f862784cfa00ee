import ipaddr from 'ipaddr.js';

/** Returns the network that rate limits count as one client: an IPv4 address, or an IPv6 /64. */
export function networkOf(address: string | null): string {
  if (address === null || !ipaddr.isValid(address.replace(/%.*$/, ''))) return 'unknown';
  const parsed = ipaddr.process(address.replace(/%.*$/, ''));
  return parsed.kind() === 'ipv4'
    ? parsed.toString()
    : `${parsed.toNormalizedString().split(':').slice(0, 4).join(':')}::/64`;
}
