/** A text with its escapes resolved; `starts` says for each unit, and for the end, where it is in the original. */
export type View = { text: string; starts: Uint32Array | undefined };

/** Escapes in escapes, such as JSON in JSON in a URL, are resolved this deep. */
const MAX_DEPTH = 3;

/** Names of HTML beside those of XML: U+00A0 to U+00FF. */
const LATIN_NAMES =
  'nbsp iexcl cent pound curren yen brvbar sect uml copy ordf laquo not shy reg macr deg plusmn sup2 sup3 acute micro ' +
  'para middot cedil sup1 ordm raquo frac14 frac12 frac34 iquest Agrave Aacute Acirc Atilde Auml Aring AElig Ccedil Egrave ' +
  'Eacute Ecirc Euml Igrave Iacute Icirc Iuml ETH Ntilde Ograve Oacute Ocirc Otilde Ouml times Oslash Ugrave Uacute Ucirc ' +
  'Uuml Yacute THORN szlig agrave aacute acirc atilde auml aring aelig ccedil egrave eacute ecirc euml igrave iacute icirc ' +
  'iuml eth ntilde ograve oacute ocirc otilde ouml divide oslash ugrave uacute ucirc uuml yacute thorn yuml';

const NAMED = new Map([
  ['amp', '&'],
  ['lt', '<'],
  ['gt', '>'],
  ['quot', '"'],
  ['apos', "'"],
  ...LATIN_NAMES.split(' ').map((name, at) => [name, String.fromCharCode(0xa0 + at)] as const),
]);

const CONTROLS: Readonly<Record<string, string>> = {
  a: '\u0007',
  b: '\b',
  f: '\f',
  n: '\n',
  r: '\r',
  t: '\t',
  v: '\v',
};

/** Escapes of shells, URLs, JSON, JavaScript, Python and C, XML and HTML. */
const ESCAPES =
  /'\\''|'"'"'|(?:%[\dA-Fa-f]{2})+|(?:\\x[\dA-Fa-f]{2})+|(?:\\[0-3][0-7]{2})+|\\u[\dA-Fa-f]{4}|\\u\{[\dA-Fa-f]{1,6}\}|\\U[\dA-Fa-f]{8}|\\[abfnrtv]|\\[^A-Za-z\d]|&#\d{1,7};|&#[xX][\dA-Fa-f]{1,6};|&[A-Za-z]{2,6}[1-4]{0,2};/g;

/** The start of an escape, or of a character of several, at the end of a text. */
const UNFINISHED_ESCAPE =
  /(?:(?:%[89A-Fa-f][\dA-Fa-f]){1,3}(?:%[\dA-Fa-f]?)?|%[\dA-Fa-f]?|(?:\\x[89A-Fa-f][\dA-Fa-f]){1,3}(?:\\(?:x[\dA-Fa-f]?)?)?|(?:\\[23][0-7]{2}){1,3}(?:\\[0-3]?[0-7]?)?|\\(?:x[\dA-Fa-f]?|[0-3][0-7]?|u[\dA-Fa-f]{0,3}|u\{[\dA-Fa-f]{0,6}|U[\dA-Fa-f]{0,7})?|&(?:#?[\dA-Za-z]{0,8})?|'(?:\\'?|"'?"?)?)$/;

/** No unfinished escape is longer. */
const MAX_UNFINISHED = 24;

/** A part of an escape: the character that it means, and how many units of the text it has. */
type Part = [character: string, length: number];

const ofCode = (code: number, escape: string): Part[] => [
  [code <= 0x10_ffff ? String.fromCodePoint(code) : escape, escape.length],
];

/** How many bytes a character in UTF-8 has that begins with this one. */
const utf8Length = (first: number): number =>
  first < 0x80 ? 1 : first < 0xe0 ? 2 : first < 0xf0 ? 3 : 4;

/** The characters of bytes, each escaped by `width` units. `other` is what a byte means that is not UTF-8. */
function ofBytes({
  width,
  bytes,
  other,
}: {
  width: number;
  bytes: Buffer;
  other(byte: number, at: number): Part;
}): Part[] {
  const parts: Part[] = [];
  for (let at = 0; at < bytes.length;) {
    const first = bytes.readUInt8(at);
    const length = utf8Length(first);
    const character = bytes.subarray(at, at + length).toString();
    const isUtf8 = !character.includes('\uFFFD');
    parts.push(isUtf8 ? [character, length * width] : other(first, at));
    at += isUtf8 ? length : 1;
  }
  return parts;
}

const inHex = (escape: string, width: number): Buffer =>
  Buffer.from(escape.replaceAll(width === 3 ? '%' : '\\x', ''), 'hex');

/** What an escape means. One that means nothing stays as it is. */
function resolve(escape: string): Part[] {
  const [first, second = ''] = escape;
  if (first === "'") return [["'", escape.length]];
  if (first === '%')
    return ofBytes({
      width: 3,
      bytes: inHex(escape, 3),
      other: (_, at) => [escape.slice(at * 3, at * 3 + 3), 3],
    });
  if (first === '&') {
    const body = escape.slice(1, -1);
    if (second !== '#') return [[NAMED.get(body) ?? escape, escape.length]];
    const isHex = /^#x/i.test(body);
    return ofCode(Number.parseInt(body.slice(isHex ? 2 : 1), isHex ? 16 : 10), escape);
  }
  const latin = (byte: number): Part => [String.fromCharCode(byte), 4];
  if (second === 'x') return ofBytes({ width: 4, bytes: inHex(escape, 4), other: latin });
  if (/\d/.test(second)) {
    const bytes = Buffer.from(
      escape
        .slice(1)
        .split('\\')
        .map((digits) => Number.parseInt(digits, 8)),
    );
    return ofBytes({ width: 4, bytes, other: latin });
  }
  if (escape.length > 2)
    return ofCode(Number.parseInt(escape.replaceAll(/[^\dA-Fa-f]/g, ''), 16), escape);
  return [[CONTROLS[second] ?? second, escape.length]];
}

/** Resolves the escapes of a text once; undefined if it has none. */
function resolveAll({ text, starts }: View): View | undefined {
  let resolved = '';
  // A character is never longer than its escape.
  const positions = new Uint32Array(text.length + 1);
  let end = 0;
  const add = (characters: string, at: (index: number) => number) => {
    for (let i = 0; i < characters.length; i++) {
      const original = at(i);
      positions[resolved.length + i] = starts?.[original] ?? original;
    }
    resolved += characters;
  };
  const keep = (to: number) => {
    const from = end;
    add(text.slice(from, to), (index) => from + index);
  };
  for (const { 0: escape, index } of text.matchAll(ESCAPES)) {
    keep(index);
    let at = index;
    for (const [character, length] of resolve(escape)) {
      const from = at;
      const isKept = character.length === length;
      add(character, (unit) => (isKept ? from + unit : from));
      at += length;
    }
    end = at;
  }
  if (end === 0) return undefined;
  keep(text.length);
  positions[resolved.length] = starts?.[text.length] ?? text.length;
  return resolved === text ? undefined : { text: resolved, starts: positions };
}

/** A text as it is, and with its escapes resolved once, twice and so on, as long as that changes it. */
export function viewsOf(text: string): View[] {
  const views: View[] = [{ text, starts: undefined }];
  let view = views[0];
  while (view && views.length <= MAX_DEPTH) {
    view = resolveAll(view);
    if (view) views.push(view);
  }
  return views;
}

/** A text without an escape at its end that may go on in what follows. */
export function withoutUnfinishedEscape(text: string): string {
  const unfinished = UNFINISHED_ESCAPE.exec(text.slice(-MAX_UNFINISHED));
  return unfinished ? text.slice(0, text.length - unfinished[0].length) : text;
}
