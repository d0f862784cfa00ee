import { ownValue } from './ownValue.ts';

const ACRONYMS: ReadonlySet<string> = new Set(['ip', 'vrf', 'vlan']);

/** The last word of a name in the plural, in the singular: `prefixes`, `addresses`, `devices`. */
const singular = (word: string): string =>
  /(?:ss|x|ch|sh)es$/.test(word) ? word.slice(0, -2) : word.replace(/s$/, '');

/** Kinds whose name in paths is not the word for their records. */
const OTHER_WORDS: Readonly<Record<string, string>> = { workflows: 'approval-requests' };

/**
 * The name of a kind of records in words, for a number of them: `prefix`, `IP addresses`. `kind` is as
 * paths have it, such as `ip-addresses`.
 */
export function nounOf(kind: string, count: number): string {
  const words = (ownValue(OTHER_WORDS, kind) ?? kind).split('-');
  return words
    .map((word, index) => {
      const one = singular(word);
      const base = ACRONYMS.has(one) ? one.toUpperCase() : one;
      const isLast = index === words.length - 1;
      if (!isLast || count === 1) return base;
      return ACRONYMS.has(one) ? `${base}s` : word;
    })
    .join(' ');
}

export const capitalized = (text: string): string => text.charAt(0).toUpperCase() + text.slice(1);

/** The same as a heading: `IP addresses`, `Prefixes`. */
export const headingOf = (kind: string, count = 2): string => capitalized(nounOf(kind, count));
