import ipaddr from 'ipaddr.js';

/** What one client can change at will counts as one: an IPv4 address, of IPv6 the /64. */
export function networkOf(address: string | null): string {
  if (address === null || !ipaddr.isValid(address.replace(/%.*$/, ''))) return 'unknown';
  const parsed = ipaddr.process(address.replace(/%.*$/, ''));
  return parsed.kind() === 'ipv4'
    ? parsed.toString()
    : `${parsed.toNormalizedString().split(':').slice(0, 4).join(':')}::/64`;
}
