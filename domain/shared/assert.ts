/**
 * Returns `value` when it is neither null nor undefined. For invariants that the code itself upholds,
 * never for input: `what` names the invariant in the error, for example `approval.jobId`.
 */
export function assertDefined<T>(value: T, what: string): NonNullable<T> {
  if (value === null || value === undefined)
    throw new Error(`Invariant violated: ${what} is missing`);
  return value;
}
