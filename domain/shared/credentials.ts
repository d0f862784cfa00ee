import { decodePercent } from './percent.ts';
import { MASK } from './mask.ts';
import { takeAll, type Steps } from './steps.ts';

/** Parts of names, without case and separators, whose values are credentials. */
const STEMS = [
  'passw',
  'passphrase',
  'passcode',
  'kennwort',
  'secret',
  'token',
  'credential',
  'authorization',
  'cookie',
  'bearer',
  'apikey',
  'authkey',
  'privatekey',
  'accesskey',
  'sharedkey',
  'sshkey',
  'hmackey',
  'signingkey',
  'encryptionkey',
  'masterkey',
  'snmpcommunity',
  'communitystring',
];
/** Whole words of names. Inside longer words they mean something else. */
const WORDS: ReadonlySet<string> = new Set([
  'pass',
  'pwd',
  'psw',
  'pw',
  'psk',
  'jwt',
  'otp',
  'pin',
  'auth',
]);

/** Words that say that the value is about a credential: `tokenType`, `maxTokens`. */
const ABOUT_FIRST: ReadonlySet<string> = new Set(['max', 'min']);
const ABOUT_LAST: ReadonlySet<string> = new Set([
  'count',
  'endpoint',
  'expiry',
  'length',
  'limit',
  'policy',
  'seconds',
  'ttl',
  'type',
  'uri',
  'url',
]);

/** Names with none of these letters in a row, without separators between them, name no credential. */
const MAY_NAME = new RegExp([...STEMS, ...WORDS].join('|'));

/** Longer names are not searched: what they name is masked. */
const MAX_NAME_CHARS = 10_000;

/** A name without accents. */
const plainOf = (name: string): string =>
  /^[\0-\x7f]*$/.test(name) ? name : name.normalize('NFKD').replaceAll(/\p{M}/gu, '');

/** True for names of fields whose values are credentials, in any letter case and notation. */
export function isCredentialName(name: string): boolean {
  if (name.length > MAX_NAME_CHARS) return true;
  const plain = plainOf(name);
  const joined = plain.toLowerCase().replaceAll(/[^a-z]+/g, '');
  if (!MAY_NAME.test(joined)) return false;
  // The words of a name in camelCase, snake_case, kebab-case or another notation.
  const words =
    plain.match(/[A-Z]+(?![a-z])|[A-Z]?[a-z]+/g)?.map((word) => word.toLowerCase()) ?? [];
  if (ABOUT_FIRST.has(words[0] ?? '') || ABOUT_LAST.has(words.at(-1) ?? '')) return false;
  return STEMS.some((stem) => joined.includes(stem)) || words.some((word) => WORDS.has(word));
}

/** HTTP headers and query parameters have more such names: `x-key`, `sig`. */
export const isCredentialParameter = (name: string): boolean =>
  isCredentialName(name) || /auth|key|signature|^sig$/i.test(name);

/** Called with each value that is masked. */
type OnMasked = (value: string) => void;

/** A search, and what it has done since its last step, in characters that were read once. */
type Search = { onMasked: OnMasked; work: number };

/** About a millisecond. */
const STEP_WORK = 200_000;
/** What a value costs, or a name in a text. */
const VALUE_WORK = 200;
/** What a character of the name of a field costs. */
const NAME_WORK = 20;

/** Adds to the work of a search. True if that ends a step. */
function endsStep(search: Search, work: number): boolean {
  search.work += work;
  if (search.work < STEP_WORK) return false;
  search.work = 0;
  return true;
}

/** Deeper values are masked as a whole: they are not searched. */
const MAX_DEPTH = 200;
/** How much deeper JSON in a text is. Each text would otherwise be searched once for each level of JSON in it. */
const TEXT_DEPTH = 40;

function maskWhole(text: string, { onMasked }: Search): string {
  onMasked(text);
  return MASK;
}

/** Masks a value of a credential that has no parts. */
function maskLeaf(value: unknown, search: Search): unknown {
  if (value === '' || value === null || value === undefined || typeof value === 'boolean')
    return value;
  return typeof value === 'string' || typeof value === 'number'
    ? maskWhole(String(value), search)
    : MASK;
}

/** In `{ "name": "password", "value": "…" }` another field names the value. */
const namesValue = (object: Record<string, unknown>): boolean =>
  ['name', 'key', 'field', 'header'].some((field) => {
    const name = object[field];
    return typeof name === 'string' && isCredentialName(name);
  });

/** The value with masks, or itself if nothing in it is masked. Everything in a credential is. */
function* maskValue(
  value: unknown,
  search: Search,
  depth: number,
  isCredential = false,
): Steps<unknown> {
  if (typeof value === 'string' && !isCredential) return yield* maskTextAt(value, search, depth);
  if (typeof value !== 'object' || value === null)
    return isCredential ? maskLeaf(value, search) : value;
  if (value instanceof Date) return isCredential ? MASK : value;
  if (depth >= MAX_DEPTH) return MASK;
  return Array.isArray(value)
    ? yield* maskItems(value, search, depth, isCredential)
    : yield* maskFields(value as Record<string, unknown>, search, depth, isCredential);
}

function* maskItems(
  items: readonly unknown[],
  search: Search,
  depth: number,
  isCredential: boolean,
): Steps<unknown> {
  const maskedItems: unknown[] = [];
  let isChanged = false;
  for (const item of items) {
    if (endsStep(search, VALUE_WORK)) yield;
    const masked = yield* maskValue(item, search, depth + 1, isCredential);
    isChanged ||= masked !== item;
    maskedItems.push(masked);
  }
  return isChanged ? maskedItems : items;
}

function* maskFields(
  object: Record<string, unknown>,
  search: Search,
  depth: number,
  isCredential: boolean,
): Steps<unknown> {
  const isPair = 'value' in object && namesValue(object);
  const names = Object.keys(object);
  const maskedFields: [name: string, masked: unknown][] = [];
  let isChanged = false;
  if (endsStep(search, names.length * NAME_WORK)) yield;
  for (const name of names) {
    if (endsStep(search, VALUE_WORK + name.length * NAME_WORK)) yield;
    const isMasked = isCredential || (isPair && name === 'value') || isCredentialName(name);
    const masked = yield* maskValue(object[name], search, depth + 1, isMasked);
    isChanged ||= masked !== object[name];
    maskedFields.push([name, masked]);
  }
  return isChanged ? Object.fromEntries(maskedFields) : object;
}

/** A name without percent-encoding of ASCII, whether the rest is well-formed or not. */
const decodeName = (name: string): string =>
  name.includes('%')
    ? name.replaceAll(/%([0-7][\da-f])/gi, (_, hex: string) =>
        String.fromCharCode(Number.parseInt(hex, 16)),
      )
    : name;

/**
 * How a text contains credentials. `start` matches up to the value; a text without `mark` has no match. The groups of
 * `start` are what precedes it, which must not be in the value of another match, and the name in that. Without
 * `isCredential`, every value is a credential.
 *
 * Each expression begins with what is rare and then checks what precedes it: a text without that takes hardly any time.
 */
type Notation = {
  mark: string;
  start: RegExp;
  value: RegExp;
  isCredential?: (name: string) => boolean;
};

const QUOTED = String.raw`"[^"\\]*(?:\\.[^"\\]*)*"?|'[^'\\]*(?:\\.[^'\\]*)*'?`;
/** A string of JSON that is itself inside a string. */
const ESCAPED = String.raw`\\+"[^"\\]*(?:\\+")?`;
const NAME = String.raw`(?:(?:private|api|access|signing|shared|encryption) )?[A-Za-z_][\w.-]{0,80}`;
const SCHEME = String.raw`:\/\/(?<=[a-z][a-z0-9+.-]{0,20}:\/\/)`;

const NOTATIONS: readonly Notation[] = [
  {
    mark: 'PRIVATE KEY-----',
    start: /(?=-----BEGIN [A-Z ]*PRIVATE KEY-----)/g,
    value: /[^]*?(?:-----END [A-Z ]*-----|$)/y,
  },
  {
    mark: '://',
    start: new RegExp(String.raw`${SCHEME}[^\s/?#@"'<>:]{0,256}:(?=[^\s/?#@"'<>]{1,512}@)`, 'gi'),
    value: /[^\s/?#@"'<>]+/y,
  },
  {
    mark: '://',
    start: new RegExp(String.raw`${SCHEME}(?=[^\s/?#@"'<>:]{1,256}@)`, 'gi'),
    value: /[^\s/?#@"'<>:]+/y,
  },
  {
    mark: '',
    start: /\bbearer\s+(?=[A-Za-z0-9._~+/=-]{8})/gi,
    value: /[A-Za-z0-9._~+/=-]+/y,
  },
  {
    mark: 'eyJ',
    start: /(?=eyJ(?<![\w.-]eyJ)[\w-]{5,}\.[\w-]+\.)/g,
    value: /eyJ[\w-]+\.[\w-]+\.[\w-]*/y,
  },
  // A header line. The value of a cookie or an authorization has several parts.
  {
    mark: ':',
    start: /:(?<=\b(((?:proxy-)?authorization|(?:set-)?cookie)\s*):)\s*(?!["'\\[{])/gi,
    value: /[^\r\n]+/y,
    isCredential: () => true,
  },
  {
    mark: '=',
    start: /=(?<=[?&](([^=&?#\s"'<>]{1,200}))=)/g,
    value: /[^&#\s"'<>]*/y,
    isCredential: isCredentialParameter,
  },
  {
    mark: '=',
    start: /=(?<=(?<![\w.%[\]-])(([\w.%[\]-]{1,200}))=)/g,
    value: new RegExp(`${QUOTED}|[^&#;\\s"'<>]*`, 'y'),
    isCredential: isCredentialName,
  },
  {
    mark: ':',
    start: new RegExp(String.raw`:(?<=(?<![\w.-])((${NAME})\\*["']?\s*):)\s*`, 'g'),
    value: new RegExp(
      String.raw`${QUOTED}|${ESCAPED}|\[[^\]]*\]?|\{[^}]*\}?|[^\s,;&"'<>[\]{}]+`,
      'y',
    ),
    isCredential: isCredentialName,
  },
  {
    mark: '<',
    start: /()<([A-Za-z_][\w:.-]{0,80})(?:\s[^<>]*)?>/g,
    value: /[^<]+/y,
    isCredential: isCredentialName,
  },
];

/** Masks a value, but not the quotes around it. */
function maskQuoted(value: string, search: Search): string {
  const quote = /^\\*["']/.exec(value)?.[0] ?? '';
  const isClosed = value.length > quote.length && value.endsWith(quote);
  const text = value.slice(quote.length, isClosed ? value.length - quote.length : undefined);
  if (text === '' || text === MASK || /^(true|false|null)$/.test(text)) return value;
  return `${quote}${maskWhole(text, search)}${isClosed ? quote : ''}`;
}

/** Masks the values of credentials in one notation. Other values are searched in their turn. */
function* maskNotation(
  text: string,
  { start, value, isCredential }: Notation,
  search: Search,
): Steps<string> {
  let masked = '';
  let end = 0;
  if (endsStep(search, text.length)) yield;
  for (const match of text.matchAll(start)) {
    if (endsStep(search, VALUE_WORK)) yield;
    const [{ length }, { length: before } = '', name = ''] = match;
    if (match.index - before < end) continue;
    if (isCredential && !isCredential(decodeName(name))) continue;
    value.lastIndex = match.index + length;
    const found = value.exec(text)?.[0] ?? '';
    masked += text.slice(end, match.index + length);
    masked += (isCredential ? maskQuoted : maskWhole)(found, search);
    end = match.index + length + found.length;
  }
  return end === 0 ? text : masked + text.slice(end);
}

/** Text without these characters and words contains no credential that can be recognised. */
const MAY_CONTAIN = /[=:<@]|bearer|eyJ|PRIVATE KEY/i;

function* maskTextAt(text: string, search: Search, depth: number): Steps<string> {
  if (!MAY_CONTAIN.test(text)) return text;
  const json = yield* maskJson(text, search, depth);
  if (json !== undefined) return json;
  let masked = text;
  for (const notation of NOTATIONS)
    if (masked.includes(notation.mark)) masked = yield* maskNotation(masked, notation, search);
  return masked;
}

/** What JSON ends with, by what it begins with. */
const ENDS: Readonly<Record<string, string>> = { '[': ']', '{': '}', '"': '"' };

/** The text with masked credentials if it is JSON that contains some. */
function* maskJson(text: string, search: Search, depth: number): Steps<string | undefined> {
  // Most texts that only begin like JSON differ from it at their end, and parsing them in vain costs more than the rest.
  const [, first = ''] = /^\s*([[{"])/.exec(text) ?? [];
  if (first === '' || ENDS[first] !== text.trimEnd().at(-1)) return undefined;
  try {
    const parsed: unknown = JSON.parse(text);
    if (endsStep(search, text.length)) yield;
    const masked = depth < MAX_DEPTH ? yield* maskValue(parsed, search, depth + TEXT_DEPTH) : MASK;
    if (masked === parsed) return undefined;
    if (endsStep(search, text.length)) yield;
    return JSON.stringify(masked);
  } catch {
    return undefined;
  }
}

const searchFor = (onMasked: OnMasked = () => undefined): Search => ({ onMasked, work: 0 });

/**
 * A JSON value in which credentials are masked: the values of fields with such names at any depth,
 * and values with such names inside of texts, such as a URL, a form or JSON. Its steps take about a
 * millisecond.
 */
export const maskingSteps = <T>(value: T): Steps<T> => maskValue(value, searchFor(), 0) as Steps<T>;

/** The same without a pause, for short values. */
export const maskCredentials = <T>(value: T): T => takeAll(maskingSteps(value));

/** The text with masked credentials. */
export const maskText = (text: string): string => maskCredentials(text);

/** The values that `maskCredentials` would mask, the longest first. */
export function credentialsIn(value: unknown): string[] {
  const found = new Set<string>();
  const search = searchFor((each) => found.add(each));
  takeAll(maskValue(value, search, 0));
  return [...found].sort((a, b) => b.length - a.length);
}

/** The forms in which a server may repeat a value: also decoded, and escaped for JSON or HTML. */
const formsOf = (value: string): string[] =>
  [value, decodePercent(value)].flatMap((each) => [
    each,
    each.replaceAll('/', String.raw`\/`),
    each.replaceAll('&', '&amp;'),
    each.replaceAll('&', String.raw`\u0026`),
  ]);

/** Values in the forms in which a server may repeat them, without duplicates, the longest first. */
export const repeatedForms = (values: readonly string[]): string[] =>
  [...new Set(values.flatMap(formsOf))].sort((a, b) => b.length - a.length);
