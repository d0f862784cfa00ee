import { MASK } from './mask.ts';

/** Shorter values are in ordinary words. */
export const MIN_MASKED_CHARS = 6;

/** More are not masked, a line would take too long: values and their forms, and the lines of values. */
const MAX_PATTERNS = 5_000;

/** Forms of lines that are masked, of one value and of all: those of the first lines. */
const MAX_LINE_FORMS = 1_000;
const MAX_ALL_LINE_FORMS = 5_000;

const MAX_VALUE_CHARS = 65_536;

export type Masker = ReturnType<typeof createMasker>;

/** The forms of a value in JSON, as JavaScript, Python and PHP write it. */
const inJson = (value: string): string[] => {
  const plain = JSON.stringify(value).slice(1, -1);
  const ascii = plain.replaceAll(
    /[\u007f-\uffff]/g,
    (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`,
  );
  return [plain, ascii, plain.replaceAll('/', '\\/')];
};

/** The forms of a value in URLs: strict, as a path, as a form; with digits of either case. */
const inUrl = (value: string): string[] => {
  const strict = encodeURIComponent(value.toWellFormed()).replaceAll(
    /[!'()*]/g,
    (character) => `%${character.charCodeAt(0).toString(16).toUpperCase()}`,
  );
  const loose = encodeURIComponent(value.toWellFormed());
  const forms = [strict, loose].flatMap((form) => [
    form,
    form.replaceAll('%2F', '/'),
    form.replaceAll('%20', '+'),
  ]);
  const lower = forms.map((form) => form.replaceAll(/%../g, (code) => code.toLowerCase()));
  return [...forms, ...lower];
};

/**
 * The parts of the base64 of any text around a value that only the value determines, for the three
 * positions that it can have in a group of three bytes.
 */
const inBase64 = (value: string): string[] => {
  const bytes = Buffer.from(value);
  return [0, 1, 2].flatMap((offset) => {
    const encoded = Buffer.concat([Buffer.alloc(offset), bytes]).toString('base64');
    const start = Math.ceil((offset * 8) / 6);
    const end = Math.floor(((offset + bytes.length) * 8) / 6);
    const standard = encoded.slice(start, end);
    return [standard, standard.replaceAll('+', '-').replaceAll('/', '_')];
  });
};

const XML: Readonly<Record<string, string>> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
};

/** The forms of a value in XML and HTML: quotes may be escaped or not, and in two ways. */
const inXml = (value: string): string[] => {
  const basic = value.replaceAll(/[&<>]/g, (character) => XML[character] ?? character);
  const quoted = value.replaceAll(/[&<>"]/g, (character) => XML[character] ?? character);
  return [basic, quoted, ...['&apos;', '&#39;', '&#x27;'].map((q) => quoted.replaceAll("'", q))];
};

/** The forms of a value in commands: in single quotes, in double quotes, with backslashes. */
const inShell = (value: string): string[] => [
  value.replaceAll("'", "'\\''"),
  value.replaceAll("'", `'"'"'`),
  value.replaceAll(/[\\"$`]/g, '\\$&'),
  value.replaceAll(/[^A-Za-z0-9_@%+=:,./\n-]/g, '\\$&'),
];

const formsOf = (value: string): string[] => [
  value,
  ...inBase64(value),
  ...inUrl(value),
  ...inJson(value),
  ...inXml(value),
  ...inShell(value),
];

const linesOf = (value: string): string[] => value.split(/\r\n|\r|\n/).map((line) => line.trim());

type Interval = [start: number, end: number];

/** Adds an interval to others, which start no later. Those that meet are one. */
function addInterval(intervals: Interval[], [start, end]: Interval): void {
  const last = intervals.at(-1);
  if (last && start <= last[1]) last[1] = Math.max(last[1], end);
  else intervals.push([start, end]);
}

/** The start of a pattern that is searched first. */
const HEAD_CHARS = 12;

/** Of each start of a pattern that has up to `count` characters: how long the longest start is that it ends with. */
function bordersOf(pattern: string, count: number): Uint32Array {
  const borders = new Uint32Array(count);
  let border = 0;
  for (let i = 1; i < count; i++) {
    const unit = pattern.charCodeAt(i);
    while (border > 0 && unit !== pattern.charCodeAt(border)) border = borders[border - 1] ?? 0;
    if (unit === pattern.charCodeAt(border)) border++;
    borders[i] = border;
  }
  return borders;
}

/** Where a pattern may begin in a text, from `start` on: with its head, or with a part of that at the end. */
function nextStart(pattern: string, text: string, start: number): number {
  const head = pattern.slice(0, HEAD_CHARS);
  const next = text.indexOf(head, start);
  return next === -1
    ? text.indexOf(pattern.charAt(0), Math.max(start, text.length - head.length + 1))
    : next;
}

/**
 * Finds a pattern in a text from `start` on, also where it overlaps itself. `unfinished` is how many characters at
 * the end are a start of it, or the whole. The time does not depend on how much the pattern repeats itself (Knuth, Morris
 * and Pratt).
 */
function findPattern(
  pattern: string,
  text: string,
  start: number,
): { found: Interval[]; unfinished: number } {
  const found: Interval[] = [];
  let borders: Uint32Array | undefined;
  let matched = 0;
  for (let at = start; at < text.length; at++) {
    if (matched === 0) at = nextStart(pattern, text, at);
    if (at === -1) break;
    const unit = text.charCodeAt(at);
    while (matched > 0 && unit !== pattern.charCodeAt(matched)) {
      // Later starts have fewer characters left.
      borders ??= bordersOf(pattern, Math.min(pattern.length, text.length - at + matched));
      matched = borders[matched - 1] ?? 0;
    }
    if (unit === pattern.charCodeAt(matched)) matched++;
    if (matched === pattern.length) addInterval(found, [at + 1 - matched, at + 1]);
  }
  return { found, unfinished: matched };
}

/**
 * Replaces secrets in texts: as they are, in base64, escaped for URLs, JSON, XML and shells; of a value with
 * several lines, also each line, and the first of these in all forms. Values and forms shorter than `minChars` are
 * not replaced.
 */
export function createMasker(
  secrets: Iterable<string> = [],
  { minChars = MIN_MASKED_CHARS }: { minChars?: number } = {},
) {
  const patterns = new Set<string>();
  let lineForms = 0;

  /** False if there are too many. */
  function addPatterns(values: Iterable<string>): boolean {
    for (const value of values) {
      if (value.length < minChars || patterns.has(value)) continue;
      if (patterns.size - lineForms >= MAX_PATTERNS) return false;
      patterns.add(value);
    }
    return true;
  }

  function addLineForms(lines: readonly string[]): void {
    const max = Math.min(lineForms + MAX_LINE_FORMS, MAX_ALL_LINE_FORMS);
    for (const line of lines)
      for (const form of formsOf(line)) {
        if (lineForms >= max) return;
        if (form.length < minChars || patterns.has(form)) continue;
        patterns.add(form);
        lineForms += 1;
      }
  }

  /**
   * Adds secrets, so that none takes what another needs: first all values, then their forms and lines. False
   * if there are too many, or one is too long: something of them is not masked.
   */
  function addAll(values: readonly string[]): boolean {
    const short = values.filter(({ length }) => length <= MAX_VALUE_CHARS);
    const whole = [...new Set(short.flatMap((value) => [value, value.trim()]))].filter(
      ({ length }) => length >= minChars,
    );
    const lines = short.map((value) => linesOf(value).filter(({ length }) => length >= minChars));
    const isComplete =
      addPatterns(whole) &&
      whole.every((value) => addPatterns(formsOf(value))) &&
      lines.every((each) => addPatterns(each));
    for (const each of lines) addLineForms(each);
    return isComplete && short.length === values.length;
  }

  /** Adds a secret. False as of `addAll`. */
  const add = (secret: string): boolean => addAll([secret]);

  /** The intervals of a text that contain secrets, merged and in order. */
  function findSecrets(value: string): Interval[] {
    const found = [...patterns].flatMap((pattern) =>
      value.includes(pattern.slice(0, HEAD_CHARS)) ? findPattern(pattern, value, 0).found : [],
    );
    const merged: Interval[] = [];
    for (const each of found.sort(([a], [b]) => a - b)) addInterval(merged, each);
    return merged;
  }

  function text(value: string): string {
    const secretParts = findSecrets(value);
    if (secretParts.length === 0) return value;
    let masked = '';
    let end = 0;
    for (const [from, to] of secretParts) {
      masked += value.slice(end, from) + MASK;
      end = to;
    }
    return masked + value.slice(end);
  }

  function json(value: unknown): unknown {
    if (typeof value === 'string') return text(value);
    if (typeof value === 'number') return text(String(value)) === String(value) ? value : MASK;
    if (Array.isArray(value)) return value.map(json);
    if (typeof value !== 'object' || value === null) return value;
    return Object.fromEntries(
      Object.entries(value).map(([name, inner]) => [text(name), json(inner)]),
    );
  }

  /**
   * How many characters at the end of a text may be the start of a secret that goes on in what follows.
   */
  function unfinished(value: string): number {
    let longest = 0;
    for (const pattern of patterns) {
      const start = Math.max(0, value.length - pattern.length + 1);
      longest = Math.max(longest, findPattern(pattern, value, start).unfinished);
    }
    return longest;
  }

  addAll([...secrets]);
  return { add, addAll, text, json, unfinished };
}
