/** How much a group of items may have. */
export type GroupBound = { maxCount: number; maxBytes: number };

/**
 * Groups items in order, so that few of them are held together, however large they are. A group ends
 * with the item with which it has `maxCount` items or at least `maxBytes`.
 */
export async function* grouped<T>(
  items: AsyncIterable<T> | Iterable<T>,
  { maxCount, maxBytes }: GroupBound,
  bytesOf: (item: T) => number,
): AsyncGenerator<T[]> {
  let group: T[] = [];
  let bytes = 0;
  for await (const item of items) {
    group.push(item);
    bytes += bytesOf(item);
    if (group.length < maxCount && bytes < maxBytes) continue;
    yield group;
    group = [];
    bytes = 0;
  }
  if (group.length > 0) yield group;
}
