import { decodePercent } from './percent.ts';
import { MASK } from './mask.ts';

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

/** The words of a name in camelCase, snake_case, kebab-case or another notation. */
const wordsOf = (name: string): string[] =>
  name
    .normalize('NFKD')
    .replaceAll(/\p{M}/gu, '')
    .replaceAll(/([a-z0-9])([A-Z])/g, '$1 $2')
    .replaceAll(/([A-Z])([A-Z][a-z])/g, '$1 $2')
    .toLowerCase()
    .split(/[^a-z]+/)
    .filter((word) => word !== '');

/** True for names of fields whose values are credentials, in any letter case and notation. */
export function isCredentialName(name: string): boolean {
  const words = wordsOf(name);
  if (ABOUT_FIRST.has(words[0] ?? '') || ABOUT_LAST.has(words.at(-1) ?? '')) return false;
  const joined = words.join('');
  return STEMS.some((stem) => joined.includes(stem)) || words.some((word) => WORDS.has(word));
}

/** HTTP headers and query parameters have more such names: `x-key`, `sig`. */
export const isCredentialParameter = (name: string): boolean =>
  isCredentialName(name) || /auth|key|signature|^sig$/i.test(name);

/** Called with each value that is masked. */
type OnMasked = (value: string) => void;

/** Deeper values are masked as a whole: they are not searched. */
const MAX_DEPTH = 200;

const isPlainObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value) && !(value instanceof Date);

/** Masks every text and number in the value of a credential. */
function maskAll(value: unknown, onMasked: OnMasked, depth: number): unknown {
  if (value === '' || value === null || value === undefined || typeof value === 'boolean')
    return value;
  if (typeof value === 'object' && depth < MAX_DEPTH) {
    if (Array.isArray(value)) return value.map((item) => maskAll(item, onMasked, depth + 1));
    return Object.fromEntries(
      Object.entries(value).map(([name, item]) => [name, maskAll(item, onMasked, depth + 1)]),
    );
  }
  if (typeof value === 'string' || typeof value === 'number') onMasked(String(value));
  return MASK;
}

/** In `{ "name": "password", "value": "…" }` another field names the value. */
const namesValue = (object: Record<string, unknown>): boolean =>
  ['name', 'key', 'field', 'header'].some((field) => {
    const name = object[field];
    return typeof name === 'string' && isCredentialName(name);
  });

function maskValue(value: unknown, onMasked: OnMasked, depth: number): unknown {
  if (typeof value === 'string') return maskTextAt(value, onMasked, depth);
  if (Array.isArray(value) || isPlainObject(value)) {
    if (depth >= MAX_DEPTH) return MASK;
    if (Array.isArray(value)) return value.map((item) => maskValue(item, onMasked, depth + 1));
    const isPair = 'value' in value && namesValue(value);
    return Object.fromEntries(
      Object.entries(value).map(([name, item]) => [
        name,
        isCredentialName(name) || (isPair && name === 'value')
          ? maskAll(item, onMasked, depth + 1)
          : maskValue(item, onMasked, depth + 1),
      ]),
    );
  }
  return value;
}

/** A name without percent-encoding of ASCII, whether the rest is well-formed or not. */
const decodeName = (name: string): string =>
  name.replaceAll(/%([0-7][\da-f])/gi, (_, hex: string) =>
    String.fromCharCode(Number.parseInt(hex, 16)),
  );

/** A notation of a name and its value. `name` ends where the value begins. */
type Notation = {
  name: RegExp;
  value: RegExp;
  isCredential: (name: string) => boolean;
};

const QUOTED = String.raw`"(?:[^"\\]|\\.)*"?|'(?:[^'\\]|\\.)*'?`;
/** A string of JSON that is itself inside a string. */
const ESCAPED = String.raw`\\+"[^"\\]*(?:\\+")?`;
const NAME = String.raw`(?:(?:private|api|access|signing|shared|encryption) )?[A-Za-z_][\w.-]{0,80}`;

const NOTATIONS: readonly Notation[] = [
  // A header line. The value of a cookie or an authorization has several parts.
  {
    name: /\b((?:proxy-)?authorization|(?:set-)?cookie)\s*:\s*(?!["'\\[{])/gi,
    value: /[^\r\n]+/y,
    isCredential: () => true,
  },
  {
    name: /[?&]([^=&?#\s"'<>]{1,200})=/g,
    value: /[^&#\s"'<>]*/y,
    isCredential: isCredentialParameter,
  },
  {
    name: /(?<![\w.%[\]-])([\w.%[\]-]{1,200})=/g,
    value: new RegExp(`${QUOTED}|[^&#;\\s"'<>]*`, 'y'),
    isCredential: isCredentialName,
  },
  {
    name: new RegExp(String.raw`(?<![\w.-])(${NAME})\\*["']?\s*:\s*`, 'g'),
    value: new RegExp(
      String.raw`${QUOTED}|${ESCAPED}|\[[^\]]*\]?|\{[^}]*\}?|[^\s,;&"'<>[\]{}]+`,
      'y',
    ),
    isCredential: isCredentialName,
  },
  {
    name: /<([A-Za-z_][\w:.-]{0,80})(?:\s[^<>]*)?>/g,
    value: /[^<]+/y,
    isCredential: isCredentialName,
  },
];

/** Masks a value, but not the quotes around it. */
function maskQuoted(value: string, onMasked: OnMasked): string {
  const quote = /^\\*["']/.exec(value)?.[0] ?? '';
  const isClosed = value.length > quote.length && value.endsWith(quote);
  const text = value.slice(quote.length, isClosed ? value.length - quote.length : undefined);
  if (text === '' || text === MASK || /^(true|false|null)$/.test(text)) return value;
  onMasked(text);
  return `${quote}${MASK}${isClosed ? quote : ''}`;
}

/** Masks the values of credentials in one notation. Other values are searched in their turn. */
function maskNotation(text: string, { name, value, isCredential }: Notation, onMasked: OnMasked) {
  let masked = '';
  let end = 0;
  for (const match of text.matchAll(name)) {
    const start = match.index + match[0].length;
    if (match.index < end || !isCredential(decodeName(match[1] ?? ''))) continue;
    value.lastIndex = start;
    const found = value.exec(text)?.[0] ?? '';
    masked += text.slice(end, start) + maskQuoted(found, onMasked);
    end = start + found.length;
  }
  return masked + text.slice(end);
}

/** Credentials that need no name. The last group is the credential, the others remain. */
const PATTERNS: readonly RegExp[] = [
  /()(-----BEGIN [A-Z ]*PRIVATE KEY-----[^]*?(?:-----END [A-Z ]*-----|$))/g,
  /([a-z][a-z0-9+.-]{0,20}:\/\/[^\s/?#@"'<>:]{0,256}:)([^\s/?#@"'<>]{1,512})(?=@)/gi,
  /([a-z][a-z0-9+.-]{0,20}:\/\/)([^\s/?#@"'<>:]{1,256})(?=@)/gi,
  /(\bbearer\s+)([A-Za-z0-9._~+/=-]{8,})/gi,
  /()((?<![\w.-])eyJ[\w-]{5,}\.[\w-]+\.[\w-]*)/g,
];

/** Text without these characters and words contains no credential that can be recognised. */
const MAY_CONTAIN = /[=:<@]|bearer|eyJ|PRIVATE KEY/i;

function maskTextAt(text: string, onMasked: OnMasked, depth: number): string {
  if (!MAY_CONTAIN.test(text)) return text;
  const json = maskJson(text, onMasked, depth);
  if (json !== undefined) return json;
  const withoutPatterns = PATTERNS.reduce(
    (masked, pattern) =>
      masked.replaceAll(pattern, (_, before: string, secret: string) => {
        onMasked(secret);
        return `${before}${MASK}`;
      }),
    text,
  );
  return NOTATIONS.reduce(
    (masked, notation) => maskNotation(masked, notation, onMasked),
    withoutPatterns,
  );
}

/** What JSON ends with, by what it begins with. */
const ENDS: Readonly<Record<string, string>> = { '[': ']', '{': '}', '"': '"' };

/** The text with masked credentials if it is JSON that contains some. */
function maskJson(text: string, onMasked: OnMasked, depth: number): string | undefined {
  // Most texts that only begin like JSON differ from it at their end, and parsing them in vain costs more than the rest.
  const [, first = ''] = /^\s*([[{"])/.exec(text) ?? [];
  if (first === '' || ENDS[first] !== text.trimEnd().at(-1)) return undefined;
  try {
    const parsed: unknown = JSON.parse(text);
    const masked = JSON.stringify(maskValue(parsed, onMasked, depth + 1));
    return masked === JSON.stringify(parsed) ? undefined : masked;
  } catch {
    return undefined;
  }
}

const ignore = () => undefined;

/**
 * A copy of a JSON value in which credentials are masked: the values of fields with such names at
 * any depth, and values with such names inside of texts, such as a URL, a form or JSON.
 */
export const maskCredentials = <T>(value: T): T => maskValue(value, ignore, 0) as T;

/** The text with masked credentials. */
export const maskText = (text: string): string => maskTextAt(text, ignore, 0);

/** The values that `maskCredentials` would mask, the longest first. */
export function credentialsIn(value: unknown): string[] {
  const found = new Set<string>();
  maskValue(value, (each) => found.add(each), 0);
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
