const ACRONYMS: ReadonlySet<string> = new Set(['api', 'ip', 'rd', 'vid', 'vlan', 'vrf']);

/** Types of records whose name in paths and events is not the word of the glossary. */
const OTHER_WORDS: ReadonlyMap<string, string> = new Map([
  ['assignment', 'role assignment'],
  ['mapping', 'provider mapping'],
  ['provider', 'identity provider'],
  ['workflow', 'approval request'],
]);

const singularOf = (word: string): string => {
  if (/(?:ss|us|is)$/.test(word)) return word;
  if (/(?:ss|x|ch|sh)es$/.test(word)) return word.slice(0, -2);
  return word.replace(/ies$/, 'y').replace(/s$/, '');
};

/** A noun in the plural: `process` is `processes`, `entry` is `entries`. */
export const pluralOf = (noun: string): string =>
  /(?:ss|x|ch|sh)$/.test(noun)
    ? `${noun}es`
    : noun.replace(/([^aeiou])y$/, (_, letter) => `${String(letter)}ie`) + 's';

/**
 * The word for a type of records, for a number of them: `ip-address`, `ip-addresses` and the table
 * `ip_addresses` are an `IP address`; `workflows` are `approval requests`.
 */
export function nounOf(type: string, count = 1): string {
  const words = type.split(/[-_ ]/);
  const name = [...words.slice(0, -1), singularOf(words.at(-1) ?? '')].join(' ');
  const noun = (OTHER_WORDS.get(name) ?? name)
    .split(' ')
    .map((word) => (ACRONYMS.has(word) ? word.toUpperCase() : word))
    .join(' ');
  return count === 1 ? noun : pluralOf(noun);
}

/** A noun with its indefinite article: `an IP range`, `a user`. */
export const withArticle = (noun: string): string =>
  `${/^[aeio]/i.test(noun) ? 'an' : 'a'} ${noun}`;

export const capitalized = (text: string): string => text.charAt(0).toUpperCase() + text.slice(1);

/** The word for a type of records as a heading: `IP addresses`, `Prefixes`. */
export const headingOf = (type: string, count = 2): string => capitalized(nounOf(type, count));

/** The noun for the field of a record: `deviceTypeId` is the `device type`. */
export const nounOfField = (name: string): string =>
  nounOf(name.replace(/Id$/, '').replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`));

/** Words as a list: `tenant, site and name`. */
export const listed = (words: readonly string[]): string =>
  [words.slice(0, -1).join(', '), ...words.slice(-1)].filter(Boolean).join(' and ');
