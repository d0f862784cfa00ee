import type { Mutation } from './planning.ts';
import type { Resource } from './resource.ts';
import { RESOURCES } from './resources/index.ts';

export const IMPORT = 'inventory.import';

/** What a file may have. */
export const MAX_IMPORT_BYTES = 32 * 1_048_576;
export const MAX_IMPORT_ROWS = 200_000;
/** Rows that a dry run looks at: it is one transaction. */
export const MAX_DRY_ROWS = 50_000;

/** What an export writes that an import does not take: it is worked out. */
const isOwnBusiness = (resource: Resource, name: string): boolean =>
  name === 'createdAt' ||
  name === 'updatedAt' ||
  name === 'version' ||
  resource.fields[name]?.derived === true;

/** The field of a column, and the field by which a reference is named: `siteId.name`. */
function columnOf(
  resource: Resource,
  column: string,
): { name: string; by: string | null } | undefined {
  const [name = '', by = null] = column.split('.', 2);
  const field = Object.hasOwn(resource.fields, name) ? resource.fields[name] : undefined;
  if (by !== null)
    return field?.reference !== undefined && RESOURCES[field.reference].names.includes(by)
      ? { name, by }
      : undefined;
  return field || name === 'id' || isOwnBusiness(resource, name) ? { name, by } : undefined;
}

/** Columns of a table that the resource does not have. */
export const unknownColumns = (resource: Resource, columns: readonly string[]): string[] =>
  columns.filter((column) => columnOf(resource, column) === undefined);

/** A cell as a value of its field; what does not fit is left for the schema to refuse. */
function valueOf(type: string | undefined, cell: string): unknown {
  if (type === 'boolean' && /^(?:true|false)$/i.test(cell)) return cell.toLowerCase() === 'true';
  if ((type === 'integer' || type === 'number') && /^-?\d+(?:\.\d+)?(?:e[+-]?\d+)?$/i.test(cell))
    return Number(cell);
  if (type === 'texts' && !cell.startsWith('['))
    return cell
      .split(',')
      .map((part) => part.trim())
      .filter((part) => part !== '');
  if (type !== 'texts' && type !== 'object') return cell;
  try {
    return JSON.parse(cell) as unknown;
  } catch {
    return cell;
  }
}

/** A row of a table as a record. An empty cell is no value: what a field has unless it is given one. */
export function recordOfRow(
  resource: Resource,
  row: Readonly<Record<string, string>>,
): Record<string, unknown> {
  const isNew = (row.id ?? '') === '';
  const record: Record<string, unknown> = {};
  for (const [column, cell] of Object.entries(row)) {
    const found = columnOf(resource, column);
    if (
      !found ||
      isOwnBusiness(resource, found.name) ||
      (cell === '' && (isNew || found.name === 'id'))
    )
      continue;
    const value =
      found.name === 'id'
        ? cell
        : cell === ''
          ? (resource.fields[found.name]?.default ?? null)
          : valueOf(resource.fields[found.name]?.type, cell);
    record[found.name] = found.by === null || value === null ? value : { [found.by]: value };
  }
  return record;
}

/** What a record of a file asks for: a change where it has an id, else a new record. Readable ids are looked up. */
export function mutationOfRecord(
  resource: Resource,
  record: Readonly<Record<string, unknown>>,
): Mutation {
  const fields = Object.fromEntries(
    Object.entries(record).filter(([name]) => !isOwnBusiness(resource, name)),
  );
  return {
    resource: resource.name,
    operation: fields.id === undefined ? 'create' : 'update',
    record: fields,
  };
}
