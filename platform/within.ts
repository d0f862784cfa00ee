/**
 * Waits for `work`, at most `ms`; then returns or throws what `late` does, undefined without it. What was started
 * goes on, and its failure is not reported any more.
 */
export async function within<T, Late = undefined>(
  ms: number,
  work: PromiseLike<T>,
  late = () => undefined as Late,
): Promise<T | Late> {
  const { promise: isOver, resolve } = Promise.withResolvers<undefined>();
  const timer = setTimeout(resolve, ms, undefined);
  try {
    return await Promise.race([work, isOver.then(late)]);
  } finally {
    clearTimeout(timer);
  }
}

/** Waits for `work`, which goes on if `signal` aborts first. Errors: the reason of `signal`, those of `work`. */
export async function orAborted<T>(signal: AbortSignal, work: PromiseLike<T>): Promise<T> {
  const { promise: aborted, reject } = Promise.withResolvers<never>();
  const abort = () => reject(signal.reason as Error);
  if (signal.aborted) abort();
  signal.addEventListener('abort', abort, { once: true });
  try {
    return await Promise.race([aborted, work]);
  } finally {
    signal.removeEventListener('abort', abort);
  }
}
