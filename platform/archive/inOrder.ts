/** Maps the items of a stream, `concurrency` of them concurrently. The results keep the order. */
export async function* mapInOrder<A, B>(
  source: AsyncIterable<A>,
  concurrency: number,
  map: (item: A) => Promise<B>,
): AsyncGenerator<B> {
  const inFlight: Promise<B>[] = [];
  try {
    for await (const item of source) {
      const mapped = map(item);
      // The failure is thrown when the result is awaited below.
      mapped.catch(() => undefined);
      inFlight.push(mapped);
      const next = inFlight.length >= concurrency ? inFlight.shift() : undefined;
      if (next) yield await next;
    }
    for (let next = inFlight.shift(); next; next = inFlight.shift()) yield await next;
  } finally {
    // If the consumer stops early, the remaining results are not awaited anywhere else.
    await Promise.allSettled(inFlight);
  }
}
