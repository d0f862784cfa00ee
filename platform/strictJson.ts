import { MAX_DEPTH } from './jsonDepth.ts';
import { MAX_FIELD_ERRORS, type FieldError } from '../domain/shared/errors.ts';
import { pointerTo } from '../domain/shared/jsonPointer.ts';

type JsonError = Omit<FieldError, 'in'>;

/** An object or array that the scanner is inside of; an array has no keys. */
type Container = { keys: Set<string> | undefined; key: string; index: number };

type StrictJson = {
  /** Undefined if there are errors. */
  value: unknown;
  /** What `JSON.parse` refuses or would lose, and what cannot be stored. */
  errors: JsonError[];
};

/** True for a property of the outermost object in which any text can be stored. */
type StoresAnyText = (property: string) => boolean;

/** What is wrong with a value, and where below `within`, as one text. */
export const problemText = (
  { pointer, message }: Pick<JsonError, 'pointer' | 'message'>,
  within = '',
): string => {
  const at = pointer.startsWith(within) ? pointer.slice(within.length) : pointer;
  return `${at} ${message}`.trimStart();
};

/**
 * Parses JSON as I-JSON (RFC 7493) asks: keys are not repeated, and numbers keep their value in a
 * double. `JSON.parse` keeps the last of repeated keys and rounds numbers silently. Keys and strings
 * that a column of the type `text` cannot store are errors, except in properties that store any text.
 */
export function parseStrictJson(
  text: string,
  storesAnyText: StoresAnyText = () => false,
): StrictJson {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (error) {
    const [at] = /\(line \d+ column \d+\)/.exec(String(error)) ?? [];
    const message = `is not valid JSON${at === undefined ? '' : ` ${at}`}`;
    return { value: undefined, errors: [{ pointer: '', code: 'json', message }] };
  }
  const errors = findProblems(text, storesAnyText);
  return { value: errors.length > 0 ? undefined : value, errors };
}

/** Why a text cannot be stored; undefined if it can. */
export const unstorable = (text: string): string | undefined =>
  text.includes('\0')
    ? 'must not contain the character U+0000'
    : text.isWellFormed()
      ? undefined
      : 'must not contain half of a surrogate pair';

/** Index of the quote that ends the string that starts at `start`. */
function endOfString(text: string, start: number): number {
  for (let end = text.indexOf('"', start + 1); ; end = text.indexOf('"', end + 1)) {
    let backslashes = 0;
    while (text.charCodeAt(end - 1 - backslashes) === 0x5c) backslashes++;
    if (backslashes % 2 === 0) return end;
  }
}

/**
 * True if a double holds a number in JSON: it has its value, is written back like it, or for a
 * fraction is the closest to it.
 */
export function isExactNumber(literal: string): boolean {
  if (literal.length < 16 && !/[eE]/.test(literal)) return true;
  const value = Number(literal);
  if (!Number.isFinite(value)) return false;
  if (/^-?\d+$/.test(literal))
    return String(value) === literal || BigInt(literal) === BigInt(value);
  return value !== 0 || !/[1-9]/.test(literal.replace(/[eE].*/, ''));
}

/** The pointer to a deeper value would itself be long. */
const TOO_DEEP = [
  { pointer: '', code: 'depth', message: `is nested deeper than ${MAX_DEPTH} levels` },
];

const [QUOTE, COMMA, MINUS, ZERO, NINE] = [0x22, 0x2c, 0x2d, 0x30, 0x39];
const [BRACKET, BRACKET_END, BRACE, BRACE_END] = [0x5b, 0x5d, 0x7b, 0x7d];

const NUMBER = /[-+.\deE]+/y;

function numberAt(text: string, start: number): string {
  NUMBER.lastIndex = start;
  return NUMBER.exec(text)?.[0] ?? '';
}

/** Scans a valid JSON text. */
function findProblems(text: string, storesAnyText: StoresAnyText): JsonError[] {
  const errors: JsonError[] = [];
  const open: Container[] = [];
  const hasUnicodeEscapes = text.includes('\\u');
  let expectsKey = false;
  const report = (code: string, message: string) => {
    if (errors.length === MAX_FIELD_ERRORS) return;
    const pointer = pointerTo(open.map(({ keys, key, index }) => (keys ? key : index)));
    errors.push({ pointer, code, message });
  };
  const isAnyTextStored = () => open[0]?.keys !== undefined && storesAnyText(open[0].key);

  /** Reads the string at `start`; returns the index after it. */
  function readString(start: number): number {
    const end = endOfString(text, start) + 1;
    // Only escapes can spell what is unstorable: most texts have none, and most strings are no keys.
    if (!expectsKey && !hasUnicodeEscapes) return end;
    const raw = text.slice(start, end);
    const isEscaped = raw.includes('\\');
    const string = isEscaped ? String(JSON.parse(raw)) : raw.slice(1, -1);
    const top = open.at(-1);
    if (expectsKey && top?.keys) {
      top.key = string;
      if (top.keys.has(string)) report('repeated_key', 'is repeated in the same object');
      top.keys.add(string);
      expectsKey = false;
    }
    const problem = isEscaped ? unstorable(string) : undefined;
    if (problem !== undefined && !isAnyTextStored()) report('characters', problem);
    return end;
  }

  /** Reads the number at `start`; returns the index after it. */
  function readNumber(start: number): number {
    const literal = numberAt(text, start);
    if (!isExactNumber(literal))
      report('precision', 'is a number that a double (IEEE 754) cannot hold; send it as a string');
    return start + literal.length;
  }

  function readPunctuation(code: number): void {
    if (code === BRACE || code === BRACKET) {
      expectsKey = code === BRACE;
      open.push({ keys: expectsKey ? new Set() : undefined, key: '', index: 0 });
    } else if (code === BRACE_END || code === BRACKET_END) {
      open.pop();
      expectsKey = false;
    } else if (code === COMMA) {
      const top = open.at(-1);
      expectsKey = top?.keys !== undefined;
      if (top) top.index++;
    }
  }

  for (let i = 0; i < text.length;) {
    const code = text.charCodeAt(i);
    if (code === QUOTE) i = readString(i);
    else if (code === MINUS || (code >= ZERO && code <= NINE)) i = readNumber(i);
    else readPunctuation(text.charCodeAt(i++));
    if (open.length > MAX_DEPTH) return TOO_DEEP;
  }
  return errors;
}
