/**
 * How many backups of a series are retained: the last ones, and the last one of each of a number of
 * days, weeks and months in UTC. Without any count all are retained.
 */
export type RetentionPolicy = { last?: number; daily?: number; weekly?: number; monthly?: number };

const dayOf = (at: Date): string => at.toISOString().slice(0, 10);

/** The Monday of the week (ISO 8601). */
function weekOf(at: Date): string {
  const monday = new Date(at);
  monday.setUTCDate(at.getUTCDate() - ((at.getUTCDay() + 6) % 7));
  return dayOf(monday);
}

const monthOf = (at: Date): string => at.toISOString().slice(0, 7);

/**
 * The ids of the backups of a series that a policy retains. The newest backup is always retained,
 * so that no policy deletes the only one.
 */
export function selectRetained(
  policy: RetentionPolicy,
  series: readonly { id: string; at: Date }[],
): Set<string> {
  if (Object.values(policy).every((count) => count === undefined))
    return new Set(series.map(({ id }) => id));
  const newestFirst = [...series].sort(
    (a, b) => b.at.getTime() - a.at.getTime() || (a.id < b.id ? 1 : -1),
  );
  const last = Math.max(1, policy.last ?? 0);
  const retained = new Set(newestFirst.slice(0, last).map(({ id }) => id));
  for (const [count = 0, periodOf] of [
    [policy.daily, dayOf],
    [policy.weekly, weekOf],
    [policy.monthly, monthOf],
  ] as const) {
    const newestByPeriod = new Map<string, string>();
    for (const { id, at } of newestFirst)
      if (!newestByPeriod.has(periodOf(at))) newestByPeriod.set(periodOf(at), id);
    for (const id of [...newestByPeriod.values()].slice(0, count)) retained.add(id);
  }
  return retained;
}
