type Read = { error: unknown; data: unknown; refetch: () => unknown };

/** The reads that have failed. One that failed and has old data shows them, and the failure. */
export const problemsOf = (reads: readonly Read[]) =>
  reads
    .filter(({ error }) => error !== null)
    .map(({ error, data, refetch }) => ({
      error,
      hasData: data !== undefined,
      retry: () => void refetch(),
    }));
