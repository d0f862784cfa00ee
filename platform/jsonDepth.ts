/** Maximum depth of JSON from clients: deeper values could overflow the stack of recursive code. */
export const MAX_DEPTH = 100;

/** Returns true if a JSON value is nested deeper than `limit` levels. */
export function isDeeperThan(limit: number, value: unknown): boolean {
  if (typeof value !== 'object' || value === null) return false;
  return limit === 0 || Object.values(value).some((inner) => isDeeperThan(limit - 1, inner));
}
