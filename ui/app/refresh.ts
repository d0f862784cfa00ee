import type { QueryClient } from '@tanstack/react-query';

export type Refresh = {
  /** Something has changed. */
  soon(): void;
  /** The page is no longer hidden. */
  shown(): void;
  /** Nothing shows the queries any more: what has changed is read when something does. */
  stop(): void;
};

/** What a query has as `meta` whose answer to a question of the user is not read again by polling. */
export const NOT_POLLED = { polled: false } as const;

/**
 * Reads everything that a page shows again, once it is visible. With `polled`, no change is known: answers to
 * questions of the user, such as plans, are not asked for again.
 */
export function createRereading(client: QueryClient, isHidden: () => boolean) {
  let kept: { polled: boolean } | undefined;
  const read = ({ polled }: { polled: boolean }) => {
    kept = undefined;
    void client.invalidateQueries(
      polled ? { predicate: ({ meta }) => meta?.polled !== false } : {},
    );
  };
  return {
    soon(polled: boolean): void {
      if (!isHidden()) read({ polled });
      else kept = { polled: polled && kept?.polled !== false };
    },
    /** The page is no longer hidden. */
    shown(): void {
      if (kept) read(kept);
    },
  };
}

type Options = {
  client: QueryClient;
  queryKey: readonly unknown[];
  pauseMs: number;
  isHidden: () => boolean;
};

/**
 * Reads the queries of a key again after changes: at most once in `pauseMs`, not while the page is hidden,
 * and not while they are being read. Such a read may have started before the change; its end would make
 * the old data count as new.
 */
export function createRefresh({ client, queryKey, pauseMs, isHidden }: Options): Refresh {
  let timer: ReturnType<typeof setTimeout> | undefined;
  const isWaiting = () => timer !== undefined;

  const read = () => {
    if (isHidden()) return;
    if (client.isFetching({ queryKey }) > 0) {
      timer = setTimeout(read, pauseMs);
      return;
    }
    timer = undefined;
    void client.invalidateQueries({ queryKey });
  };

  return {
    soon() {
      timer ??= setTimeout(read, pauseMs);
    },
    shown() {
      if (!isWaiting()) return;
      clearTimeout(timer);
      read();
    },
    stop() {
      if (!isWaiting()) return;
      clearTimeout(timer);
      void client.invalidateQueries({ queryKey, refetchType: 'none' });
    },
  };
}
