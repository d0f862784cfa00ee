const firstOf = (value: unknown): unknown =>
  Array.isArray(value) ? (value as unknown[])[0] : value;

type OneValued = { q?: string; group?: string; enabled?: boolean };

/**
 * The query of a list of accounts from that of its filters, of which some take one value in the API. Both states are
 * no filter.
 */
export function accountsListQuery<Query extends OneValued>(query: Query): Query {
  const { q, group, enabled, ...rest } = query;
  const states: readonly unknown[] = enabled === undefined ? [] : [enabled].flat();
  return {
    ...rest,
    ...(q !== undefined && { q: firstOf(q) }),
    ...(group !== undefined && { group: firstOf(group) }),
    ...(states.length === 1 && { enabled: String(states[0]) === 'true' }),
  } as Query;
}
