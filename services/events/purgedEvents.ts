import type { Knex } from '../../db/core/knex.ts';
import { firstSequenceFrom, readLastSequence } from '../../db/events/eventLog.ts';
import { lastPurgedSequence } from '../../db/retention/state.ts';
import { PLATFORM } from '../../domain/access/scope.ts';
import { AppError } from '../../domain/shared/errors.ts';

/**
 * The last purged sequence among the events that webhooks of a tenant get; 0 if none was, or none that
 * was created at `since` or later.
 */
export const lastPurgedFor = (db: Knex, webhookTenantId: string, since?: Date): Promise<number> =>
  lastPurgedSequence(
    db,
    { kind: 'everywhere' },
    webhookTenantId === PLATFORM ? undefined : webhookTenantId,
    since,
  );

/** Error: `events_purged` when events after a sequence are purged. */
export function assertNotPurged(after: number, purged: number): void {
  if (after < purged)
    throw new AppError(
      'events_purged',
      `Events up to the sequence ${purged} are purged. Continue after it.`,
      { oldestSequence: purged + 1 },
    );
}

/**
 * More sequences than a purge leaves without an event. A restore into an empty database and a failover leave more: one
 * for each microsecond since the last event that the log knows.
 */
const MAX_GAP = 100_000_000;

/**
 * Undefined for a sequence that the log knows. Otherwise it was assigned before the database was restored to an
 * earlier time, or lost its last commits in a failover: the events around it are lost, and others may have been
 * published since. Returns the sequence to continue after.
 */
export async function whereToContinue(db: Knex, after: number): Promise<number | undefined> {
  if (after === 0) return undefined;
  const next = await firstSequenceFrom(db, after);
  const last = next === undefined ? await readLastSequence(db) : next - 1;
  // An event that has the sequence itself is known, whatever follows it.
  return next === after || (last >= after && last - after < MAX_GAP) ? undefined : last;
}

/** Error: `events_purged` for a sequence that the log does not know (`whereToContinue`). */
export async function assertKnown(db: Knex, after: number): Promise<void> {
  const last = await whereToContinue(db, after);
  if (last === undefined) return;
  throw new AppError(
    'events_purged',
    `The sequence ${after} is not in the log, which was restored or lost events in a failover. Continue after ${last}.`,
    { oldestSequence: last + 1 },
  );
}
