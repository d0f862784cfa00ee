import { isJsonObject } from '../../../domain/shared/jsonObject.ts';
import type { Widths } from './widths.ts';

/** Widths of columns by user and list; the users who have changed one last come first. */
export type StoredWidths = readonly {
  userId: string;
  lists: Readonly<Record<string, Widths>>;
}[];

/** Users of one browser whose widths are kept. */
const MOST_USERS = 8;
/** No column is wider, whatever was stored. */
const MOST_PIXELS = 4_000;

const isWidth = (entry: [string, unknown]): entry is [string, number] =>
  typeof entry[1] === 'number' && entry[1] > 0 && entry[1] <= MOST_PIXELS;

const widthsIn = (value: unknown): Widths =>
  isJsonObject(value) ? Object.fromEntries(Object.entries(value).filter(isWidth)) : {};

/** What was stored, without what this version does not know. */
export const readWidths = (stored: unknown): StoredWidths =>
  (Array.isArray(stored) ? stored : []).filter(isJsonObject).flatMap(({ userId, lists }) =>
    typeof userId === 'string' && isJsonObject(lists)
      ? {
          userId,
          lists: Object.fromEntries(
            Object.entries(lists).map(([list, widths]) => [list, widthsIn(widths)]),
          ),
        }
      : [],
  );

/** With the widths of a list of a user; without any, the list is left out. */
export function withWidths(
  stored: StoredWidths,
  userId: string,
  list: string,
  widths: Widths,
): StoredWidths {
  const { [list]: _before, ...others } = stored.find((each) => each.userId === userId)?.lists ?? {};
  const lists = Object.keys(widths).length === 0 ? others : { ...others, [list]: widths };
  const rest = stored.filter((each) => each.userId !== userId);
  return [{ userId, lists }, ...rest].slice(0, MOST_USERS);
}
