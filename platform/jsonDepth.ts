/** Deeper JSON is an attack on whatever walks it. */
export const MAX_DEPTH = 100;

/** True when a JSON value is nested deeper than `limit` levels. */
export function isDeeperThan(limit: number, value: unknown): boolean {
  if (typeof value !== 'object' || value === null) return false;
  return limit === 0 || Object.values(value).some((inner) => isDeeperThan(limit - 1, inner));
}
