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

/** Why a policy retains a backup: it has no counts, or the backup is one of those that a count keeps. */
export const RETAINED_AS = ['all', 'newest', 'last', 'daily', 'weekly', 'monthly'] as const;
export type RetainedAs = (typeof RETAINED_AS)[number];

/** What keeps a backup: retention, or a legal hold. */
export const KEPT_AS = [...RETAINED_AS, 'legal_hold'] as const;
export type KeptAs = (typeof KEPT_AS)[number];

/**
 * A backup of a series, with the time of its snapshot, and whether its archive can be restored as far as is known.
 */
export type InSeries = { id: string; at: Date; isRestorable: boolean };

/** True for a policy without any count, which retains all backups. */
export const retainsAll = (policy: RetentionPolicy): boolean =>
  Object.values(policy).every((count) => count === undefined);

/** The backups that the counts of a policy retain, each with the reasons. */
function countedReasons(
  policy: RetentionPolicy,
  newestFirst: readonly InSeries[],
): Map<string, RetainedAs[]> {
  const reasons = new Map<string, RetainedAs[]>();
  const retain = (backups: readonly InSeries[], reason: RetainedAs) => {
    for (const { id } of backups) reasons.set(id, [...(reasons.get(id) ?? []), reason]);
  };
  if (policy.last === undefined) retain(newestFirst.slice(0, 1), 'newest');
  else retain(newestFirst.slice(0, Math.max(1, policy.last)), 'last');
  for (const [count = 0, periodOf, reason] of [
    [policy.daily, dayOf, 'daily'],
    [policy.weekly, weekOf, 'weekly'],
    [policy.monthly, monthOf, 'monthly'],
  ] as const) {
    const newestByPeriod = new Map<string, InSeries>();
    for (const backup of newestFirst)
      if (!newestByPeriod.has(periodOf(backup.at))) newestByPeriod.set(periodOf(backup.at), backup);
    retain([...newestByPeriod.values()].slice(0, count), reason);
  }
  return reasons;
}

/**
 * The backups of a series that a policy retains, each with the reasons. The newest one that can be restored is
 * always retained, so that no policy deletes the only one. One that cannot be restored counts for no other: it is
 * retained as long as if all could be, since its archive may be readable again.
 */
export function retentionReasons(
  policy: RetentionPolicy,
  series: readonly InSeries[],
): Map<string, RetainedAs[]> {
  if (retainsAll(policy)) return new Map(series.map(({ id }) => [id, ['all']]));
  const newestFirst = [...series].sort(
    (a, b) => b.at.getTime() - a.at.getTime() || (a.id < b.id ? 1 : -1),
  );
  const restorable = newestFirst.filter(({ isRestorable }) => isRestorable);
  return new Map([...countedReasons(policy, newestFirst), ...countedReasons(policy, restorable)]);
}

/** The ids of the backups of a series that a policy retains. */
export const selectRetained = (policy: RetentionPolicy, series: readonly InSeries[]): Set<string> =>
  new Set(retentionReasons(policy, series).keys());
