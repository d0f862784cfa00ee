import type { ImportMode } from './importLimits.ts';
import type { Mutation } from './planning.ts';
import type { Resource } from './resource.ts';
import { RESOURCES } from './resources/index.ts';
import { counted } from '../shared/counted.ts';

export const IMPORT_JOB_TYPE = 'inventory.import';

/** The outcomes of rows, and of mutations in a batch; `skipped` for rows only. */
export const OUTCOMES = [
  'created',
  'updated',
  'unchanged',
  'deleted',
  'invalid',
  'conflict',
] as const;
export const IMPORT_OUTCOMES = [...OUTCOMES, 'skipped'] as const;
type ImportOutcome = (typeof IMPORT_OUTCOMES)[number];

/**
 * Why an import fails although all its rows have an outcome; null when it succeeds. It fails when no
 * row is imported: all are invalid, or one is in the mode `all`. A dry run ends as the import would.
 */
export function importFailure(
  mode: ImportMode,
  rows: number,
  counts: Readonly<Partial<Record<string, number>>>,
): string | null {
  const count = (outcome: ImportOutcome) => counts[outcome] ?? 0;
  if (count('created') + count('updated') + count('unchanged') + count('deleted') > 0) return null;
  const found = `${count('invalid')} of ${counted(rows, 'row')} invalid, ${count('conflict')} in conflict with other records`;
  return `Nothing was imported: ${found}${mode === 'all' ? ', and the mode is all' : ''}.`;
}

/** True for columns that an export writes and an import ignores, because they are computed. */
const isReadOnlyColumn = (resource: Resource, name: string): boolean =>
  name === 'createdAt' ||
  name === 'updatedAt' ||
  name === 'version' ||
  resource.fields[name]?.derived === true;

/** Splits a column such as `siteId.name` into a field and a lookup field of its reference. */
function parseColumn(
  resource: Resource,
  column: string,
): { name: string; by: string | null } | undefined {
  const [name = '', by = null, ...more] = column.split('.');
  const field = Object.hasOwn(resource.fields, name) ? resource.fields[name] : undefined;
  if (more.length > 0) return undefined;
  if (by !== null)
    return field?.reference !== undefined && RESOURCES[field.reference].lookupFields.includes(by)
      ? { name, by }
      : undefined;
  return field || name === 'id' || isReadOnlyColumn(resource, name) ? { name, by } : undefined;
}

/** The columns that a file of a resource may have, without those that an import ignores. */
export const knownColumns = (resource: Resource): string[] => [
  'id',
  ...Object.entries(resource.fields)
    .filter(([, { derived }]) => !derived)
    .flatMap(([name, { reference }]) => [
      name,
      ...(reference === undefined ? [] : RESOURCES[reference].lookupFields).map(
        (by) => `${name}.${by}`,
      ),
    ]),
];

/** The fields that several columns of a file set, such as `siteId` and `siteId.name`. */
export function repeatedFields(columns: readonly string[]): string[] {
  const names = columns.map((column) => column.split('.', 1)[0] ?? '');
  return [...new Set(names.filter((name, i) => names.indexOf(name) < i))];
}

/** The columns of a file that match no field of the resource. */
export const unknownColumns = (resource: Resource, columns: readonly string[]): string[] =>
  columns.filter((column) => parseColumn(resource, column) === undefined);

/**
 * The first characters with which a spreadsheet takes a cell for a formula, after any number of
 * apostrophes. In some languages the wide ones of East Asian text are among them.
 * https://owasp.org/www-community/attacks/CSV_Injection
 */
const FORMULA = /^'*[=+\-@\t\r\n\uFF1D\uFF0B\uFF0D\uFF20]/;

/**
 * The cell of a text: one that a spreadsheet takes for a formula gets an apostrophe, and so does one
 * that reads like such a cell. `textOfCell` is the inverse.
 */
export const cellOfText = (text: string): string => (FORMULA.test(text) ? `'${text}` : text);

/** The text of a cell. */
export const textOfCell = (cell: string): string =>
  cell.startsWith("'") && FORMULA.test(cell) ? cell.slice(1) : cell;

/** Parses a cell as JSON: undefined if it is none. Throws if its value would not be kept. */
type ReadJson = (column: string, cell: string) => unknown;

/** Converts a cell to a value of its field. The schema rejects a cell that cannot be converted. */
function parseCell(type: string | undefined, cell: string, readJson: () => unknown): unknown {
  if (type === 'boolean' && /^(?:true|false)$/i.test(cell)) return cell.toLowerCase() === 'true';
  if ((type === 'integer' || type === 'number') && /^-?\d+(?:\.\d+)?(?:e[+-]?\d+)?$/i.test(cell))
    return readJson() ?? Number(cell);
  if (type === 'texts' && !cell.startsWith('['))
    return cell
      .split(',')
      .map((part) => part.trim())
      .filter((part) => part !== '');
  if (type !== 'texts' && type !== 'object') return cell;
  return readJson() ?? cell;
}

/** Rows of a CSV file: cells by the names of their columns. */
type CsvRow = Readonly<Record<string, string>>;

/** A row with an id is about an existing record. */
const isNewRow = ({ id = '' }: CsvRow): boolean => id === '';

/** The merged fields, such as `customFields`, that a row of a CSV file empties in an existing record. */
export const emptiedInRow = ({ fields }: Resource, row: CsvRow): string[] =>
  isNewRow(row)
    ? []
    : Object.keys(row).filter(
        (name) =>
          row[name] === '' && Object.hasOwn(fields, name) && fields[name]?.type === 'object',
      );

/**
 * Converts a row of a CSV file to a record, without what `emptiedInRow` has. In a new record an empty cell
 * is ignored; in an existing record it resets the field to its default, and is an error in a required field.
 */
export function recordFromRow(
  resource: Resource,
  row: CsvRow,
  readJson: ReadJson,
): Record<string, unknown> {
  const isNew = isNewRow(row);
  const emptied = emptiedInRow(resource, row);
  const record: Record<string, unknown> = {};
  for (const [column, text] of Object.entries(row)) {
    const cell = textOfCell(text);
    const found = parseColumn(resource, column);
    if (
      !found ||
      isReadOnlyColumn(resource, found.name) ||
      emptied.includes(found.name) ||
      (cell === '' && (isNew || found.name === 'id'))
    )
      continue;
    const field = resource.fields[found.name];
    const value =
      !field || (cell === '' && field.required)
        ? cell
        : cell === ''
          ? field.default
          : parseCell(field.type, cell, () => readJson(column, cell));
    record[found.name] = found.by === null || value === null ? value : { [found.by]: value };
  }
  return record;
}

/**
 * The mutation that a record of a file requests: an update when it has an id, else a create. For
 * records with readable ids the import checks later whether they exist.
 */
export function mutationFromRecord(
  resource: Resource,
  record: Readonly<Record<string, unknown>>,
): Mutation {
  const fields = Object.fromEntries(
    Object.entries(record).filter(
      ([name, value]) => !isReadOnlyColumn(resource, name) && !(name === 'id' && value === null),
    ),
  );
  return {
    resource: resource.name,
    operation: fields.id === undefined ? 'create' : 'update',
    record: fields,
  };
}
