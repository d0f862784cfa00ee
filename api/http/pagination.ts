import { Type, type TSchema } from 'typebox';
import { invalidField } from '../../domain/shared/errors.ts';
import type { IdKind } from '../../platform/ids.ts';
import { ok, type Answer } from '../kit/answer.ts';

export const DEFAULT_LIMIT = 50;
export const MAX_LIMIT = 200;

/** The query parameters that every list has. */
export const pageQuery = {
  limit: Type.Integer({
    minimum: 1,
    maximum: MAX_LIMIT,
    default: DEFAULT_LIMIT,
    description: 'Records on a page.',
  }),
  cursor: Type.Optional(Type.String({ description: 'nextCursor of the page before.' })),
};

/** The body of a list. */
export const listOf = (item: TSchema, title: string) =>
  Type.Object(
    {
      items: Type.Array(item),
      nextCursor: Type.Union([Type.String(), Type.Null()], {
        description: 'null on the last page.',
      }),
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
export function decodeCursor(
  list: string,
  cursor: string | undefined,
  keyPattern: RegExp,
): string | undefined {
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

/** What a list is asked for, and gives: `after` is the id behind which the page begins. */
type Page<T> = { items: T[]; nextKey: string | null };
type Load<T> = (page: { limit: number; after: string | undefined }) => Promise<Page<T>>;

/**
 * One page of records, with the cursor of the next. `list` tells cursors of lists apart, `ids` is the kind or the
 * form of the records' ids.
 */
export async function pageOf<T, V>(
  list: string,
  ids: IdKind | RegExp,
  query: { limit: number; cursor?: string | undefined },
  load: Load<T>,
  present: (item: T) => V,
): Promise<{ items: V[]; nextCursor: string | null }> {
  const after = decodeCursor(
    list,
    query.cursor,
    typeof ids === 'string' ? new RegExp(`^${ids}_[0-9a-z]{26}$`) : ids,
  );
  const { items, nextKey } = await load({ limit: query.limit, after });
  return {
    items: items.map(present),
    nextCursor: nextKey === null ? null : encodeCursor(list, nextKey),
  };
}

/** The same as an answer. */
export const listAnswer = async <T, V>(...page: Parameters<typeof pageOf<T, V>>): Promise<Answer> =>
  ok(await pageOf(...page));
