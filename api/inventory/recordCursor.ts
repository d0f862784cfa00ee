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

/** A key in a cursor: the sort value and the id, as JSON. */
const KEY_PATTERN = /^\[.{1,600}\]$/su;
const RECORD_ID = /^[\x21-\x7e]{1,100}$/;

/** True for a sort value that PostgreSQL can compare with the field. */
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

/** Decodes the cursor of a list in one order. Error: `invalid_request`. */
export function decodeRecordKey(
  list: string,
  cursor: string | undefined,
  resource: Resource,
  field: string | undefined,
): RecordKey | undefined {
  const text = decodeCursor(list, cursor, KEY_PATTERN);
  if (text === undefined) return undefined;
  const [value, id] = parseKey(text);
  if (typeof id === 'string' && RECORD_ID.test(id) && isSortable(resource, field, value))
    return { id, value };
  throw invalidField('query', '/cursor', 'cursor', 'is not a cursor of this list');
}

function parseKey(text: string): unknown[] {
  try {
    const parsed: unknown = JSON.parse(text);
    return Array.isArray(parsed) ? parsed : [];
  } catch {
    return [];
  }
}

/** Encodes the key of the next page; null on the last page. */
export const encodeRecordKey = (list: string, key: RecordKey | null): string | null =>
  key === null ? null : encodeCursor(list, JSON.stringify([key.value, key.id]));
