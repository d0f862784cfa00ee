import { cut } from '../../domain/shared/excerpt.ts';
import { Readable } from 'node:stream';
import { CsvError, parse, type CsvErrorCode, type Info } from 'csv-parse';
import type { FileRow } from '../../db/inventory/importRows.ts';
import { AppError, invalidField } from '../../domain/shared/errors.ts';
import {
  emptiedInRow,
  knownColumns,
  mutationFromRecord,
  recordFromRow,
  repeatedFields,
  unknownColumns,
} from '../../domain/inventory/imports.ts';
import { isResourceName } from '../../domain/inventory/names.ts';
import type { Resource } from '../../domain/inventory/resource.ts';
import { RESOURCES } from '../../domain/inventory/resources/index.ts';
import { counted } from '../../domain/shared/counted.ts';
import { isJsonObject } from '../../domain/shared/jsonObject.ts';
import { isDeeperThan, MAX_DEPTH } from '../../platform/jsonDepth.ts';
import { parseStrictJson, unstorable } from '../../platform/strictJson.ts';

/**
 * The number of characters of one row: an exported record has custom fields of up to 64 KiB, in CSV with
 * doubled quotation marks.
 */
const MAX_ROW_LENGTH = 262_144;

const lineError = (line: number, message: string): AppError =>
  invalidField('body', `/lines/${line}`, 'line', `line ${line}: ${message}`);

/** Decodes a file as UTF-8, piece by piece. Error: `invalid_request`. */
async function* decodeUtf8(source: Readable): AsyncGenerator<string> {
  const decoder = new TextDecoder('utf-8', { fatal: true });
  try {
    for await (const chunk of source as AsyncIterable<Buffer>)
      yield decoder.decode(chunk, { stream: true });
    yield decoder.decode();
  } catch (error) {
    throw error instanceof TypeError ? invalidField('body', '', 'encoding', 'is not UTF-8') : error;
  }
}

/** True for a JSON value with a key or a text that PostgreSQL cannot store. */
function isUnstorable(value: unknown): boolean {
  if (typeof value === 'string') return unstorable(value) !== undefined;
  return (
    typeof value === 'object' &&
    value !== null &&
    Object.entries(value).some(([key, inner]) => isUnstorable(key) || isUnstorable(inner))
  );
}

/** Checks that PostgreSQL can store a row and that it is not nested too deep. */
function checkStorable(row: FileRow): FileRow {
  if (isDeeperThan(MAX_DEPTH, row.mutation))
    throw lineError(row.line, `is nested deeper than ${MAX_DEPTH} levels`);
  if (isUnstorable(row.mutation))
    throw lineError(row.line, 'contains a character that cannot be stored');
  return row;
}

/** The number of unknown columns that a message names. */
const MAX_NAMED_COLUMNS = 100;

function unknownColumnsMessage(resource: Resource, unknown: readonly string[]): string {
  const named = unknown
    .slice(0, MAX_NAMED_COLUMNS)
    .map((column) => JSON.stringify(cut(column, 100)));
  const more = unknown.length > named.length ? ` and ${unknown.length - named.length} more` : '';
  return (
    `${resource.name} have no column ${named.join(', ')}${more}. ` +
    `Columns are ${knownColumns(resource).join(', ')}`
  );
}

/**
 * Returns a function that parses a cell as JSON as strictly as a body; undefined if it is none.
 * Error: `invalid_request` for a value that would not be kept.
 */
const readCellJson =
  (line: number) =>
  (column: string, cell: string): unknown => {
    const { value, errors } = parseStrictJson(cell);
    const error = errors.find(({ code }) => code !== 'json');
    if (error) throw lineError(line, `${column}${error.pointer} ${error.message}`);
    return value;
  };

const lengthOf = (cells: unknown): number => (Array.isArray(cells) ? cells.length : 0);

/** What is wrong with a row that is no CSV, by the codes of the parser. */
const CSV_PROBLEMS: Readonly<Partial<Record<CsvErrorCode, (error: CsvError) => string>>> = {
  CSV_RECORD_INCONSISTENT_COLUMNS: ({ record, columns }) =>
    `has ${counted(lengthOf(record), 'cell')}, and the first line has ${lengthOf(columns)}. A cell with commas needs quotes`,
  CSV_QUOTE_NOT_CLOSED: () => 'has a cell whose quotes do not end',
  INVALID_OPENING_QUOTE: () => 'has a quote inside a cell without quotes',
  CSV_INVALID_CLOSING_QUOTE: () =>
    'has text after the quotes of a cell. A quote inside of quotes is written twice',
  CSV_MAX_RECORD_SIZE: () => `is longer than ${MAX_ROW_LENGTH} characters`,
};

/**
 * Reads the rows of a CSV file (RFC 4180). Its first line names fields. Error: `invalid_request`
 * with the line.
 */
export async function* readCsv(source: Readable, resource: Resource): AsyncGenerator<FileRow> {
  const header = (named: string[]): string[] => {
    const columns = named.map((column) => column.trim());
    const unknown = unknownColumns(resource, columns);
    if (unknown.length > 0) throw lineError(1, unknownColumnsMessage(resource, unknown));
    const [repeated] = repeatedFields(columns);
    if (repeated !== undefined) throw lineError(1, `names ${JSON.stringify(repeated)} twice`);
    return columns;
  };
  const text = Readable.from(decodeUtf8(source));
  const parser = text.pipe(
    parse({
      columns: header,
      info: true,
      skip_empty_lines: true,
      max_record_size: MAX_ROW_LENGTH,
      // By default the end of the first line decides: the last cells of others would keep a CR.
      record_delimiter: ['\r\n', '\n', '\r'],
    }),
  );
  text.once('error', (error) => parser.destroy(error));
  try {
    for await (const { record, info } of parser as AsyncIterable<{
      record: Record<string, string>;
      info: Info;
    }>) {
      const fields = recordFromRow(resource, record, readCellJson(info.lines));
      const emptied = emptiedInRow(resource, record);
      yield checkStorable({
        line: info.lines,
        mutation: {
          ...mutationFromRecord(resource, fields),
          ...(emptied.length > 0 && { emptied }),
        },
      });
    }
  } catch (error) {
    throw error instanceof CsvError
      ? lineError(
          Number(error.lines) || 1,
          CSV_PROBLEMS[error.code]?.(error) ?? cut(error.message, 200),
        )
      : error;
  }
}

/**
 * Splits a file into lines at line feeds only, because JSON may contain other separators. The last line
 * is too long if the file was not read to its end.
 */
async function* linesOf(source: Readable): AsyncGenerator<string> {
  let rest = '';
  for await (const piece of decodeUtf8(source)) {
    const lines = (rest + piece).split('\n');
    rest = lines.pop() ?? '';
    yield* lines;
    if (rest.length > MAX_ROW_LENGTH) break;
  }
  yield rest;
}

/**
 * Reads the rows of an NDJSON file: records of `resource`, or without a resource mutations
 * `{ resource, operation, record }`. Error: `invalid_request` with the line.
 */
export async function* readNdjson(
  source: Readable,
  resource: Resource | undefined,
): AsyncGenerator<FileRow> {
  let line = 0;
  for await (const text of linesOf(source)) {
    line++;
    // Also an empty line: the rest of the file after a part that is too long is not read.
    if (text.length > MAX_ROW_LENGTH)
      throw lineError(line, `is longer than ${MAX_ROW_LENGTH} characters`);
    if (text.trim() === '') continue;
    yield checkStorable({ line, mutation: readLine(text, line, resource) });
  }
}

function readLine(text: string, line: number, resource: Resource | undefined): FileRow['mutation'] {
  const { value, errors } = parseStrictJson(text, () => true);
  const [error] = errors;
  if (error) throw lineError(line, `${error.pointer} ${error.message}`.trim());
  if (!isJsonObject(value)) throw lineError(line, 'is not an object');
  if (resource) return mutationFromRecord(resource, value);
  const { resource: name, operation, record, ...more } = value;
  if (
    !isResourceName(name) ||
    typeof record !== 'object' ||
    record === null ||
    Object.keys(more).length > 0
  ) {
    throw lineError(line, 'is not { "resource": …, "operation": …, "record": … }');
  }
  const fields = record as Record<string, unknown>;
  const inferred = mutationFromRecord(RESOURCES[name], fields);
  if (operation === undefined) return inferred;
  return {
    ...inferred,
    operation: typeof operation === 'string' ? operation : '',
    isOperationGiven: true,
    // As in a batch: the version that the record must have.
    record: {
      ...(inferred.record as Record<string, unknown>),
      ...(operation !== 'create' && versionOf(fields)),
    },
  };
}

const versionOf = ({ version }: Readonly<Record<string, unknown>>): object =>
  version === undefined || version === null ? {} : { version };
