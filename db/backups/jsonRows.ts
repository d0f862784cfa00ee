import { ArchiveError } from '../../platform/archive/index.ts';
import type { Pause } from '../../platform/turns.ts';
import type { Column } from './catalog.ts';

/** How a value of a column is converted to COPY text. */
export type JsonColumn = Pick<Column, 'name' | 'type' | 'notNull'>;

const NEWLINE = 10;
const [QUOTE, BACKSLASH, COMMA, COLON] = [0x22, 0x5c, 0x2c, 0x3a];
const [OPENING, CLOSING] = [new Set([0x5b, 0x7b]), new Set([0x5d, 0x7d])];

const COPY_NULL = String.raw`\N`;
const COPY_ESCAPES: Readonly<Record<string, string>> = {
  '\\': String.raw`\\`,
  '\n': String.raw`\n`,
  '\r': String.raw`\r`,
  '\t': String.raw`\t`,
};

const escapeForCopy = (text: string): string =>
  text.replace(/[\\\n\r\t]/g, (character) => COPY_ESCAPES[character] ?? character);

const damaged = () =>
  new ArchiveError('archive_damaged', 'The archive is damaged: a row is not a JSON object.');

/**
 * Converts rows of JSON, one a line, to COPY text. PostgreSQL cannot do this: its JSON functions refuse
 * `\u0000` and half a surrogate pair, which a column of the type `json` may contain. Values of JSON
 * columns are therefore taken as they are written.
 */
export function createJsonRows(columns: readonly JsonColumn[]) {
  /** The pieces of a line whose end is in a later one. */
  let unfinished: Buffer[] = [];

  return {
    /** Returns the rows that end in these bytes. */
    async convert(bytes: Buffer, pause: Pause): Promise<Buffer> {
      const rows: Buffer[] = [];
      let start = 0;
      for (let end = bytes.indexOf(NEWLINE); end !== -1; end = bytes.indexOf(NEWLINE, start)) {
        const line = Buffer.concat([...unfinished, bytes.subarray(start, end)]);
        rows.push(Buffer.from(`${copyLine(line.toString('latin1'), columns)}\n`, 'latin1'));
        unfinished = [];
        start = end + 1;
        await pause();
      }
      if (start < bytes.length) unfinished.push(bytes.subarray(start));
      return Buffer.concat(rows);
    },
  };
}

/** One row. In its text, and in that of the result, each character is a byte of UTF-8. */
function copyLine(line: string, columns: readonly JsonColumn[]): string {
  const values = splitObject(line);
  return columns.map((column) => copyValue(values.get(column.name), column)).join('\t');
}

/** The members of a JSON object: the texts of the values by name. */
function splitObject(line: string): Map<string, string> {
  const values = new Map<string, string>();
  // The first character is the opening brace; white space between tokens remains with the values.
  for (let at = 1; at < line.length;) {
    const colon = endOfValue(line, at, COLON);
    const end = endOfValue(line, colon + 1, COMMA);
    values.set(textOf(line.slice(at, colon)), line.slice(colon + 1, end).trim());
    at = end + 1;
  }
  return values;
}

/** The position at which a value ends: at the delimiter, or at the brace that closes the object. */
function endOfValue(line: string, start: number, delimiter: number): number {
  let depth = 0;
  for (let at = start; at < line.length; at++) {
    const code = line.charCodeAt(at);
    if (code === QUOTE) at = endOfString(line, at);
    else if (OPENING.has(code)) depth += 1;
    else if (depth === 0 && (code === delimiter || CLOSING.has(code))) return at;
    else if (CLOSING.has(code)) depth -= 1;
  }
  throw damaged();
}

/** The position of the quote that closes the string which another one opens. */
function endOfString(line: string, opening: number): number {
  for (let at = opening + 1; at < line.length; at++) {
    const code = line.charCodeAt(at);
    if (code === BACKSLASH) at += 1;
    else if (code === QUOTE) return at;
  }
  throw damaged();
}

/** What a JSON string contains. */
function textOf(json: string): string {
  const text = json.trim();
  if (!text.includes('\\')) return text.slice(1, -1);
  const value = JSON.parse(Buffer.from(text, 'latin1').toString()) as string;
  return Buffer.from(value).toString('latin1');
}

function copyValue(json: string | undefined, { type, notNull }: JsonColumn): string {
  const isJson = type.startsWith('json');
  // In a column that is NOT NULL, JSON null is the JSON value null.
  if (json === undefined || (json === 'null' && !(isJson && notNull))) return COPY_NULL;
  if (isJson) return escapeForCopy(json);
  if (json.startsWith('"')) return escapeForCopy(textOf(json));
  return type.endsWith('[]') ? escapeForCopy(arrayLiteral(json)) : json;
}

type JsonElement = string | number | boolean | null | JsonElement[];

/** The text of an array as PostgreSQL reads it. */
function arrayLiteral(json: string): string {
  const values = JSON.parse(Buffer.from(json, 'latin1').toString()) as JsonElement[];
  return Buffer.from(literalOf(values)).toString('latin1');
}

function literalOf(value: JsonElement): string {
  if (value === null) return 'NULL';
  if (Array.isArray(value)) return `{${value.map(literalOf).join(',')}}`;
  return `"${String(value).replace(/["\\]/g, String.raw`\$&`)}"`;
}
