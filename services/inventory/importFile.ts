import { createInterface } from 'node:readline';
import type { Readable } from 'node:stream';
import { CsvError, parse, type Info } from 'csv-parse';
import type { FileRow } from '../../db/inventory/importRows.ts';
import { AppError, invalidField } from '../../domain/errors.ts';
import { mutationOfRecord, recordOfRow, unknownColumns } from '../../domain/inventory/imports.ts';
import type { ResourceName } from '../../domain/inventory/names.ts';
import type { Resource } from '../../domain/inventory/resource.ts';
import { RESOURCES } from '../../domain/inventory/resources/index.ts';

/** Characters of one row. */
const MAX_ROW_LENGTH = 65_536;

const badLine = (line: number, message: string): AppError => invalidField('body', `/lines/${line}`, 'line', `line ${line}: ${message}`);

/** Rows of a CSV file: the first line names fields. Error: `invalid_request`, which names the line. */
export async function* readCsv(source: Readable, resource: Resource): AsyncGenerator<FileRow> {
  const header = (columns: string[]): string[] => {
    const unknown = unknownColumns(resource, columns);
    if (unknown.length > 0) throw badLine(1, `${resource.name} have no ${unknown.slice(0, 10).join(', ')}`);
    if (new Set(columns).size < columns.length) throw badLine(1, 'names a column twice');
    return columns;
  };
  const parser = source.pipe(parse({ columns: header, bom: true, info: true, skip_empty_lines: true, trim: true, max_record_size: MAX_ROW_LENGTH }));
  source.once('error', (error) => parser.destroy(error));
  try {
    for await (const { record, info } of parser as AsyncIterable<{ record: Record<string, string>; info: Info }>) {
      yield { line: info.lines, mutation: mutationOfRecord(resource, recordOfRow(resource, record)) };
    }
  } catch (error) {
    throw error instanceof CsvError ? badLine(Number(error.lines) || 1, error.message.slice(0, 200)) : error;
  }
}

/** Rows of an NDJSON file: records of `resource`, or without one changes `{ resource, operation, record }`. */
export async function* readNdjson(source: Readable, resource: Resource | undefined): AsyncGenerator<FileRow> {
  const lines = createInterface({ input: source, crlfDelay: Infinity });
  let failure: Error | undefined;
  source.once('error', (error: Error) => {
    failure = error;
    lines.close();
  });
  let line = 0;
  for await (const read of lines) {
    line++;
    const text = line === 1 ? read.replace(/^\uFEFF/, '') : read;
    if (text.trim() === '') continue;
    if (text.length > MAX_ROW_LENGTH) throw badLine(line, `is longer than ${MAX_ROW_LENGTH} characters`);
    yield { line, mutation: readLine(text, line, resource) };
  }
  if (failure) throw failure;
}

function readLine(text: string, line: number, resource: Resource | undefined): FileRow['mutation'] {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    throw badLine(line, 'is not JSON');
  }
  if (typeof value !== 'object' || value === null || Array.isArray(value)) throw badLine(line, 'is not an object');
  if (resource) return mutationOfRecord(resource, value as Record<string, unknown>);
  const { resource: name, operation, record, ...more } = value as Record<string, unknown>;
  if (typeof name !== 'string' || !Object.hasOwn(RESOURCES, name) || typeof record !== 'object' || record === null || Object.keys(more).length > 0) {
    throw badLine(line, 'is not { "resource": …, "operation": …, "record": … }');
  }
  const guessed = mutationOfRecord(RESOURCES[name as ResourceName], record as Record<string, unknown>);
  return operation === undefined ? guessed : { ...guessed, operation: typeof operation === 'string' ? operation : '' };
}
