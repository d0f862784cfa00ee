/** Maps a stream, `atOnce` items at a time; what comes out has the order of what went in. */
export async function* inOrder<A, B>(
  source: AsyncIterable<A>,
  atOnce: number,
  map: (item: A) => Promise<B>,
): AsyncGenerator<B> {
  const underWay: Promise<B>[] = [];
  try {
    for await (const item of source) {
      const mapped = map(item);
      // Its failure is met when its turn comes.
      mapped.catch(() => undefined);
      underWay.push(mapped);
      const next = underWay.length >= atOnce ? underWay.shift() : undefined;
      if (next) yield await next;
    }
    for (let next = underWay.shift(); next; next = underWay.shift()) yield await next;
  } finally {
    // Whoever stops early does not ask for the rest.
    await Promise.allSettled(underWay);
  }
}
