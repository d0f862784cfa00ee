import type { Resource } from '../../domain/inventory/resource.ts';

const capitalize = (word: string) => word.charAt(0).toUpperCase() + word.slice(1);

/** A resource in operation ids, for example `IpAddresses`. */
export const pluralIdOf = ({ name }: Resource): string => name.split('-').map(capitalize).join('');

/** A kind or a resource in summaries, with an indefinite article: `ip-range` is `an IP range`. */
export function nounOf(name: string, withArticle = true): string {
  const noun = name
    .replaceAll('-', ' ')
    .replace(/^(ip|vrf|vlan)(?=s?\b)/, (word) => word.toUpperCase());
  if (!withArticle) return noun;
  return /^[aeiou]|^IP/.test(noun) ? `an ${noun}` : `a ${noun}`;
}
