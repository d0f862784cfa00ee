import type { Resource } from '../../domain/inventory/resource.ts';
import { capitalized } from '../../domain/shared/nouns.ts';

/** A resource in operation ids, for example `IpAddresses`. */
export const pluralIdOf = ({ name }: Resource): string => name.split('-').map(capitalized).join('');
