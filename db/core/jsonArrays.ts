import { storableJson } from './storableJson.ts';

/** The size of a text from which on it is cut. PostgreSQL and the driver hold several copies of each. */
const MAX_CHARS = 4 * 1_048_576;

/**
 * Rows as JSON texts of arrays, in order. Each text is made when it is asked for, so that few rows are
 * held as text, however large all are together.
 */
export function* jsonArrays<T>(
  items: readonly T[],
  rowOf: (item: T) => object,
): Generator<{ text: string; count: number; isFull: boolean }> {
  let texts: string[] = [];
  let chars = 0;
  const cut = (isFull: boolean) => ({ text: `[${texts.join(',')}]`, count: texts.length, isFull });
  for (const item of items) {
    const text = storableJson(rowOf(item));
    texts.push(text);
    chars += text.length;
    if (chars < MAX_CHARS) continue;
    yield cut(true);
    texts = [];
    chars = 0;
  }
  if (texts.length > 0) yield cut(false);
}
