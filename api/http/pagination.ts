import { Type, type TSchema } from 'typebox';
import type { IdKind } from '../../platform/ids.ts';
import { cursorText, invalidCursor, parseCursor } from './listCursor.ts';
import { ok, type HttpResponse } from './response.ts';

export const DEFAULT_LIMIT = 50;
export const MAX_LIMIT = 200;

/** The query parameters of every list. */
export const pageQuery = {
  limit: Type.Integer({
    minimum: 1,
    maximum: MAX_LIMIT,
    default: DEFAULT_LIMIT,
    description:
      'Maximum number of records on a page. Fewer are on a page of large records, with a cursor of the next one.',
  }),
  cursor: Type.Optional(
    Type.String({ maxLength: 2_048, description: '`nextCursor` of the previous page.' }),
  ),
};

/** The schema of a page of `item`s. */
export const listSchema = (item: TSchema, title: string) =>
  Type.Object(
    {
      items: Type.Array(item),
      nextCursor: Type.Union([Type.String(), Type.Null()], {
        description: 'Cursor of the next page; null on the last page.',
      }),
    },
    { title },
  );

/** Encodes a cursor: the name of the list, and the key of the last record of the page. */
export const encodeCursor = (list: string, key: string): string => cursorText([list, key]);

/**
 * Decodes the key of a cursor, which must match `keyPattern`. Error: `invalid_request` for a cursor
 * that `list` did not return.
 */
export function decodeCursor(
  list: string,
  cursor: string | undefined,
  keyPattern: RegExp,
): string | undefined {
  if (cursor === undefined) return undefined;
  const [, key] = parseCursor(cursor);
  if (typeof key !== 'string' || !keyPattern.test(key) || encodeCursor(list, key) !== cursor)
    throw invalidCursor('is not a cursor of this list');
  return key;
}

/** The pattern of ids of a kind, or one that a list has instead. */
export const idPatternOf = (id: IdKind | RegExp): RegExp =>
  typeof id === 'string' ? new RegExp(`^${id}_[0-9a-z]{26}$`) : id;

/** `nextKey` is the key of the last item, or null on the last page; `after` excludes that key. */
type LoadedPage<T> = { items: T[]; nextKey: string | null };
type LoadPage<T> = (page: { limit: number; after: string | undefined }) => Promise<LoadedPage<T>>;

/**
 * Loads a page and returns it with the cursor of the next one. `list` is a name that only this list
 * has, so that cursors of other lists are rejected; `idFormat` is the kind or the pattern of the
 * keys. Error: `invalid_request`.
 */
export async function paginate<T, V>(
  list: string,
  idFormat: IdKind | RegExp,
  query: { limit: number; cursor?: string | undefined },
  load: LoadPage<T>,
  present: (item: T) => V,
): Promise<{ items: V[]; nextCursor: string | null }> {
  const after = decodeCursor(list, query.cursor, idPatternOf(idFormat));
  const { items, nextKey } = await load({ limit: query.limit, after });
  return {
    items: items.map(present),
    nextCursor: nextKey === null ? null : encodeCursor(list, nextKey),
  };
}

/** The page as a response with status 200. */
export const listResponse = async <T, V>(
  ...page: Parameters<typeof paginate<T, V>>
): Promise<HttpResponse> => ok(await paginate(...page));
