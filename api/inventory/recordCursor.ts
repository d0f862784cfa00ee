import { invalidField } from '../../domain/shared/errors.ts';
import {
  isBlock,
  parseBlock,
  parseHost,
  parseInterfaceAddress,
} from '../../domain/inventory/cidr.ts';
import type { Resource } from '../../domain/inventory/resource.ts';
import type { RecordKey } from '../../services/inventory/records.ts';
import { decodeCursor, encodeCursor } from '../http/pagination.ts';

/** A key as it stands in a cursor: the value that is sorted by, and the id. */
const KEY = /^\[.{1,600}\]$/su;
const RECORD_ID = /^[\x21-\x7e]{1,100}$/;

/** True for a value that a list can be sorted by: PostgreSQL must be able to read it. */
function isSortable(
  resource: Resource,
  field: string | undefined,
  value: unknown,
): value is string | number | null {
  if (field === undefined) return value === null;
  const type = resource.fields[field]?.type;
  if (type === 'integer')
    return typeof value === 'number' && Number.isInteger(value) && Math.abs(value) < 2 ** 31;
  if (
    typeof value !== 'string' ||
    value.length > 300 ||
    value.includes('\0') ||
    !value.isWellFormed()
  )
    return false;
  if (type === 'network') return isBlock(parseBlock(value));
  return type === 'address'
    ? (parseHost(value) ?? parseInterfaceAddress(value)) !== undefined
    : true;
}

/** The key in a cursor of a list in one order. Error: `invalid_request`. */
export function decodeRecordKey(
  list: string,
  cursor: string | undefined,
  resource: Resource,
  field: string | undefined,
): RecordKey | undefined {
  const text = decodeCursor(list, cursor, KEY);
  if (text === undefined) return undefined;
  const [value, id] = readKey(text);
  if (typeof id === 'string' && RECORD_ID.test(id) && isSortable(resource, field, value))
    return { id, value };
  throw invalidField('query', '/cursor', 'cursor', 'is not a cursor of this list');
}

function readKey(text: string): unknown[] {
  try {
    const parsed: unknown = JSON.parse(text);
    return Array.isArray(parsed) ? parsed : [];
  } catch {
    return [];
  }
}

export const encodeRecordKey = (list: string, key: RecordKey | null): string | null =>
  key === null ? null : encodeCursor(list, JSON.stringify([key.value, key.id]));
