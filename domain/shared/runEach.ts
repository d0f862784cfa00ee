/**
 * Runs steps that do not depend on each other, one after another, until `signal` aborts. A step that
 * fails does not keep later ones from running. Returns the results and the failures.
 */
export async function tryEach<T>(
  steps: Iterable<() => Promise<T>>,
  signal?: AbortSignal,
): Promise<{ results: T[]; failures: unknown[] }> {
  const [results, failures]: [T[], unknown[]] = [[], []];
  for (const step of steps) {
    if (signal?.aborted) break;
    try {
      results.push(await step());
    } catch (error) {
      failures.push(error);
    }
  }
  return { results, failures };
}

/**
 * The same for callers to whom a failure matters after all steps have run. Returns the results of the
 * steps. Error: that of the step which failed, an `AggregateError` if several did.
 */
export async function runEach<T>(
  steps: Iterable<() => Promise<T>>,
  signal?: AbortSignal,
): Promise<T[]> {
  const { results, failures } = await tryEach(steps, signal);
  if (failures.length === 0) return results;
  if (failures.length === 1) throw failures[0];
  throw new AggregateError(failures, `${failures.length} steps have failed`);
}
