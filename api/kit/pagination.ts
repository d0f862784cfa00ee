import { Type, type TSchema } from 'typebox';
import { invalidField } from '../../domain/errors.ts';

export const DEFAULT_LIMIT = 50;
export const MAX_LIMIT = 200;

/** The query parameters that every list has. */
export const pageQuery = {
  limit: Type.Integer({ minimum: 1, maximum: MAX_LIMIT, default: DEFAULT_LIMIT, description: 'Records on a page.' }),
  cursor: Type.Optional(Type.String({ description: 'nextCursor of the page before.' })),
};

/** The body of a list. */
export const listOf = (item: TSchema, title: string) =>
  Type.Object(
    {
      items: Type.Array(item),
      nextCursor: Type.Union([Type.String(), Type.Null()], { description: 'null on the last page.' }),
    },
    { title },
  );

/** A cursor is the list it belongs to and the key after which the next page begins. */
export const encodeCursor = (list: string, key: string): string =>
  Buffer.from(JSON.stringify([list, key])).toString('base64url');

/**
 * The key in a cursor of `list`. Error: `invalid_request` for anything that this list has not given out.
 * `keyPattern` is the form of the keys.
 */
export function decodeCursor(list: string, cursor: string | undefined, keyPattern: RegExp): string | undefined {
  if (cursor === undefined) return undefined;
  const key = readCursor(list, cursor);
  if (key === undefined || !keyPattern.test(key) || encodeCursor(list, key) !== cursor) {
    throw invalidField('query', '/cursor', 'cursor', 'is not a cursor of this list');
  }
  return key;
}

function readCursor(list: string, cursor: string): string | undefined {
  try {
    const parsed: unknown = JSON.parse(Buffer.from(cursor, 'base64url').toString('utf8'));
    if (!Array.isArray(parsed) || parsed.length !== 2 || parsed[0] !== list) return undefined;
    return typeof parsed[1] === 'string' ? parsed[1] : undefined;
  } catch {
    return undefined;
  }
}
