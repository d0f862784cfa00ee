type WaitOptions = {
  /** How long the entry waits; without it, until it is granted or `signal` aborts. */
  maxMs?: number | undefined;
  signal?: AbortSignal | undefined;
  /** Why an entry is refused whose time is over. */
  refusal(): Error;
};

/** A queue of those that wait, each until it is granted a `G`, or leaves. */
export function createWaitQueue<E, G = undefined>() {
  const grants = new Map<E, (granted: G) => void>();
  return {
    size: (): number => grants.size,

    /** Those that wait, the one that has waited longest first. */
    entries: (): E[] => [...grants.keys()],

    /** Waits until `entry` is granted. Errors: that of `refusal`; the reason of `signal`. */
    async wait(entry: E, { maxMs, signal, refusal }: WaitOptions): Promise<G> {
      const { promise, resolve, reject } = Promise.withResolvers<G>();
      // Who is granted in the same moment stays so.
      const leave = (reason: () => unknown) => void (grants.delete(entry) && reject(reason()));
      const onAbort = () => leave(() => signal?.reason);
      const timer = maxMs === undefined ? undefined : setTimeout(() => leave(refusal), maxMs);
      signal?.addEventListener('abort', onAbort, { once: true });
      grants.set(entry, resolve);
      try {
        return await promise;
      } finally {
        clearTimeout(timer);
        signal?.removeEventListener('abort', onAbort);
      }
    },

    /** Lets an entry go on that waits. */
    grant(entry: E, granted: G): void {
      const resolve = grants.get(entry);
      grants.delete(entry);
      resolve?.(granted);
    },
  };
}
