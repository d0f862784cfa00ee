import type { Knex } from '../../db/core/knex.ts';
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
