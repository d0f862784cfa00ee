/**
 * Returns a function that calls `run`. Calls during a run share the next one, so that what a caller
 * gets was read after its call.
 */
export function joinRuns<T>(run: () => Promise<T>): () => Promise<T> {
  let running: Promise<T> | undefined;
  let next: Promise<T> | undefined;
  return function call(): Promise<T> {
    if (!running) {
      running = run().finally(() => (running = undefined));
      return running;
    }
    next ??= running
      .catch(() => undefined)
      .then(() => {
        next = undefined;
        return call();
      });
    return next;
  };
}
