import type { Row } from './resource.ts';

/** A change of a record, from its entry of the audit log: the record before and after it. */
export type RecordChange = { before: Row | null; after: Row | null };

/** True for the same version of a record, or for none. A restore of an older version returned to earlier versions. */
const isSameState = (one: Row | null, other: Row | null): boolean =>
  one?.version === other?.version && one?.updatedAt === other?.updatedAt;

const timeOf = (row: Row, field: 'createdAt' | 'updatedAt'): number =>
  new Date(String(row[field])).getTime();

/**
 * The state of a record at a time, null if it did not exist. `previous` is its last change until then,
 * `next` the first one afterwards, `present` the record as it is. Undefined if it is not known: entries
 * between them are archived or were not restored, or a restore of an older version wrote none.
 */
export function stateAt(
  at: Date,
  previous: RecordChange | undefined,
  next: RecordChange | undefined,
  present: Row | null,
): Row | null | undefined {
  const following = next ? next.before : present;
  // Each change sets the time of the update: since then there was none.
  const isOfThen = following !== null && at.getTime() >= timeOf(following, 'updatedAt');
  if (previous) {
    const { after } = previous;
    if (isSameState(after, following)) return after;
    // Clocks differ: the entry of a later version may be in front of that of an earlier one.
    return isOfThen && after && following.version > after.version ? following : undefined;
  }
  const known = following ?? next?.after;
  if (!known || at.getTime() < timeOf(known, 'createdAt')) return null;
  return isOfThen ? following : undefined;
}
