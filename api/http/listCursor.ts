import { hash } from 'node:crypto';
import {
  isBlock,
  parseBlock,
  parseHost,
  parseInterfaceAddress,
} from '../../domain/inventory/cidr.ts';
import { invalidField } from '../../domain/shared/errors.ts';
import type { FieldKind, ListKey, ListSort } from '../../domain/shared/lists.ts';

/** Parameters that change what a page shows, not which records the list has. */
const PRESENTATION: ReadonlySet<string> = new Set([
  'limit',
  'cursor',
  'count',
  'facets',
  'fields',
  'include',
]);

/** Where the query of a request has the parameters of its path, which choose the records of a list, too. */
export const PATH_PARAMETERS = Symbol('path parameters');

/** A cursor continues one list with one filter in one order: the name of the list, and a hash. */
export function cursorScope(
  name: string,
  query: Readonly<Record<string, unknown> & { [PATH_PARAMETERS]?: object }>,
): string[] {
  const asked = Object.entries(query)
    .filter(([parameter]) => !PRESENTATION.has(parameter))
    .sort(([a], [b]) => (a < b ? -1 : 1));
  const path = Object.entries(query[PATH_PARAMETERS] ?? {});
  const parts = path.length === 0 ? asked : [...asked, path];
  return [name, hash('sha256', JSON.stringify(parts), 'base64url').slice(0, 12)];
}

/** The text of a cursor: the list that it continues, and the key of the last record of the page. */
export const cursorText = (parts: readonly (string | null)[]): string =>
  Buffer.from(JSON.stringify(parts)).toString('base64url');

export const encodeKey = (scope: readonly string[], { value, id }: ListKey): string =>
  cursorText([...scope, value, id]);

/** A time as PostgreSQL writes it: offsets are less than 16 hours. */
const TIME =
  /^(?!0000)(\d{4}-\d\d-\d\d) (\d\d:\d\d:\d\d(?:\.\d{1,6})?)[+-](?:0\d|1[0-5])(?::[0-5]\d)?$/;

/** Whether PostgreSQL can compare a sort value with a field: what casts fail for is no cursor. */
const IS_SORT_VALUE: Readonly<Record<FieldKind, (text: string) => boolean>> = {
  text: (text) => text.length <= 2_000 && !text.includes('\0') && text.isWellFormed(),
  integer: (text) => /^-?\d{1,10}$/.test(text) && Math.abs(Number(text)) < 2 ** 31,
  bigint: (text) => /^-?\d{1,16}$/.test(text) && Number.isSafeInteger(Number(text)),
  // As PostgreSQL writes doubles; it refuses other texts that are rounded to zero.
  number: (text) =>
    text.length <= 40 &&
    /^-?\d+(?:\.\d+)?(?:e[+-]\d{1,3})?$/.test(text) &&
    Number.isFinite(Number(text)) &&
    (Number(text) !== 0 || !/^[^e]*[1-9]/.test(text)),
  boolean: (text) => text === 'true' || text === 'false',
  time: (text) => {
    const [, day = '', time = ''] = TIME.exec(text) ?? [];
    const date = new Date(`${day}T${time}Z`);
    // JavaScript reads a day that does not exist as one of the next month.
    return !Number.isNaN(date.getTime()) && date.toISOString().startsWith(day);
  },
  network: (text) => isBlock(parseBlock(text)),
  address: (text) => (parseHost(text) ?? parseInterfaceAddress(text)) !== undefined,
};

export const invalidCursor = (message: string) =>
  invalidField('query', '/cursor', 'cursor', message);

/** Decodes the key of a cursor. Error: `invalid_request` for what this query cannot continue. */
export function decodeKey(
  scope: readonly string[],
  cursor: string | undefined,
  idPattern: RegExp,
  sort: ListSort | undefined,
): ListKey | undefined {
  if (cursor === undefined) return undefined;
  const parts = parseCursor(cursor);
  const [value, id] = parts.slice(scope.length);
  if (
    parts.length !== scope.length + 2 ||
    parts[0] !== scope[0] ||
    typeof id !== 'string' ||
    !idPattern.test(id)
  )
    throw invalidCursor('is not a cursor of this list');
  if (scope.some((part, i) => part !== parts[i]))
    throw invalidCursor('is a cursor of this list with another filter or in another order');
  const key = { value: value as string | null, id };
  if (!isSortValue(value, sort) || encodeKey(scope, key) !== cursor)
    throw invalidCursor('is not a cursor of this list');
  return key;
}

function isSortValue(value: unknown, sort: ListSort | undefined): boolean {
  const byId = !sort || sort.field === 'id';
  if (value === null) return byId || sort.nullable;
  return !byId && typeof value === 'string' && IS_SORT_VALUE[sort.kind](value);
}

/** The parts of a cursor; none for a text that is no cursor. */
export function parseCursor(cursor: string): unknown[] {
  try {
    const parsed: unknown = JSON.parse(Buffer.from(cursor, 'base64url').toString('utf8'));
    return Array.isArray(parsed) ? parsed : [];
  } catch {
    return [];
  }
}
