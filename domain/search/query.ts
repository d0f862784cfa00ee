import {
  addressBits,
  blockAt,
  formatBlock,
  formatHost,
  parseHost,
  parseInterfaceAddress,
  type Family,
} from '../inventory/cidr.ts';
import { RESOURCE_NAMES } from '../inventory/names.ts';
import { RESOURCES } from '../inventory/resources/index.ts';
import type { LabelKind } from '../shared/labels.ts';

/** The kinds of records of other areas, by the prefix of their ids. Kinds with labels are called as there. */
const OTHER_KINDS = {
  job: 'jobs',
  sch: 'schedules',
  apr: 'workflows',
  usr: 'users',
  whk: 'webhooks',
  bkp: 'backups',
} as const satisfies Readonly<Record<string, LabelKind | 'users'>>;

/** What a search can find: resources of the inventory, and records of other areas. */
export const SEARCH_KINDS = [...RESOURCE_NAMES, ...Object.values(OTHER_KINDS)];
export type SearchKind = (typeof SEARCH_KINDS)[number];

const KINDS_BY_PREFIX: ReadonlyMap<string, SearchKind> = new Map<string, SearchKind>([
  ...Object.entries(OTHER_KINDS),
  ...RESOURCE_NAMES.flatMap((name): [string, SearchKind][] => {
    const { idPrefix } = RESOURCES[name];
    return idPrefix === null ? [] : [[idPrefix, name]];
  }),
]);

/** The kind of the records whose ids begin like this one. */
export const kindOfId = (id: string): SearchKind | undefined => KINDS_BY_PREFIX.get(id.slice(0, 3));

/** How a record matches, best first. */
export const MATCHES = ['exact', 'prefix', 'word', 'part', 'similar'] as const;
export type Match = (typeof MATCHES)[number];

/** What a text says about addresses: one address, a network, or all addresses that begin with it. */
export type NetworkShape =
  | { kind: 'address'; host: string }
  | { kind: 'network'; cidr: string }
  | { kind: 'beginning'; cidr: string };

export type SearchQuery = {
  /** The text without outer spaces, with single spaces between its words. */
  text: string;
  /** The words, in the case in which they were written. */
  words: readonly string[];
  /** The id of a record; it is the only match. */
  id: string | undefined;
  network: NetworkShape | undefined;
};

const ID = /^[a-z]{3}_[0-9a-z]{26}$/;

/** Reads a search text: an id, an address, a network, or words. */
export function parseSearch(input: string): SearchQuery {
  const text = input.trim().replaceAll(/\s+/g, ' ');
  const lower = text.toLowerCase();
  return {
    text,
    words: text.split(' '),
    id: ID.test(lower) ? lower : undefined,
    network: networkShape(lower),
  };
}

function networkShape(text: string): NetworkShape | undefined {
  const host = parseHost(text);
  if (host) return { kind: 'address', host: formatHost(host.family, host.value) };
  const withLength = parseInterfaceAddress(text);
  if (withLength) {
    const { family, value, length } = withLength;
    const block = blockAt(family, value, length);
    // Of 10.1.2.3/24 an interface may have the address.
    return block.first === value && length < addressBits(family)
      ? { kind: 'network', cidr: formatBlock(block) }
      : { kind: 'address', host: formatHost(family, value) };
  }
  return beginning(text);
}

/** `10.1` is 10.1.0.0/16, `2001:db8:` is 2001:db8::/32. Other texts have no separator. */
function beginning(text: string): NetworkShape | undefined {
  if (/^\d{1,3}(\.\d{1,3}){0,2}\.?$/.test(text) && text.includes('.')) {
    const numbers = text.split('.').filter(Boolean);
    const rest = Array<string>(4 - numbers.length).fill('0');
    return blockOf([...numbers, ...rest].join('.'), 4, numbers.length * 8);
  }
  const groups = /^([0-9a-f]{1,4}:){1,7}$/.test(text) ? text.slice(0, -1).split(':') : undefined;
  // Six groups of two digits are the beginning of a MAC address as well.
  if (!groups || groups.every(({ length }) => length === 2)) return undefined;
  return blockOf(`${groups.join(':')}${groups.length < 8 ? '::' : ''}`, 6, groups.length * 16);
}

function blockOf(network: string, family: Family, length: number): NetworkShape | undefined {
  const host = parseHost(network);
  return host && { kind: 'beginning', cidr: formatBlock(blockAt(family, host.value, length)) };
}
