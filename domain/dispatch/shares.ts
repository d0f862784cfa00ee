/** What a tenant holds of something that tenants share, and how much more it could use now. */
export type Demand = { tenantId: string; held: number; waiting: number };

/**
 * True when a tenant may take one more of what is shared. With 50 percent, it may hold as many as
 * are free: one tenant gets half of all, two get a third each and leave a third. So there is always
 * something left for the next tenant, however many there are.
 */
export const mayTakeMore = (held: number, free: number, sharePercent: number): boolean =>
  free > 0 && held * (100 - sharePercent) < sharePercent * free;

/**
 * Shares out what is free, one by one, each to the tenant that holds the least among those that may
 * take more. Returns how many each tenant gets.
 */
export function shareOut(
  demands: readonly Demand[],
  { capacity, sharePercent }: { capacity: number; sharePercent: number },
): Map<string, number> {
  const grants = new Map<string, number>();
  let free = capacity - demands.reduce((sum, { held }) => sum + held, 0);
  const left = demands.map((demand) => ({ ...demand }));
  for (;;) {
    const next = left
      .filter(({ held, waiting }) => waiting > 0 && mayTakeMore(held, free, sharePercent))
      .reduce<Demand | undefined>(
        (least, demand) => (least && least.held <= demand.held ? least : demand),
        undefined,
      );
    if (!next) return grants;
    next.held += 1;
    next.waiting -= 1;
    free -= 1;
    grants.set(next.tenantId, (grants.get(next.tenantId) ?? 0) + 1);
  }
}
