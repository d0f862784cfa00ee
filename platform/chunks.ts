/** How much a chunk of items may have. */
export type ChunkBound = { maxCount: number; maxBytes: number };

/**
 * Cuts items into chunks, in order, so that few of them are held together, however large they are. A chunk ends
 * with the item with which it has `maxCount` items or at least `maxBytes`.
 */
export async function* chunked<T>(
  items: AsyncIterable<T> | Iterable<T>,
  { maxCount, maxBytes }: ChunkBound,
  bytesOf: (item: T) => number,
): AsyncGenerator<T[]> {
  let chunk: T[] = [];
  let bytes = 0;
  for await (const item of items) {
    chunk.push(item);
    bytes += bytesOf(item);
    if (chunk.length < maxCount && bytes < maxBytes) continue;
    yield chunk;
    chunk = [];
    bytes = 0;
  }
  if (chunk.length > 0) yield chunk;
}
