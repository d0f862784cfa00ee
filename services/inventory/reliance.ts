import { ConcurrencyError } from '../../db/core/constraints.ts';
import type { Knex } from '../../db/core/knex.ts';
import { areUnchanged, type UnlockedRow } from '../../db/inventory/load.ts';
import { recordKey } from '../../domain/inventory/planSnapshot.ts';
import type { UnwrittenOutcome } from './planner.ts';

/** What a plan has read without a lock, and what it changes. */
export type Reliance = Pick<UnwrittenOutcome, 'relied' | 'changes'>;

/**
 * Checks at the end of a transaction that what its plans have read without a lock is still so, and
 * keeps it so until the commit. Records that it changes have the version that it has read, else
 * they could not be written. Error: `ConcurrencyError`.
 */
export async function assertUnchanged(trx: Knex, plans: readonly Reliance[]): Promise<void> {
  const changed = new Set(
    plans.flatMap(({ changes }) => changes.map(({ resource, id }) => recordKey(resource, id))),
  );
  if (changed.size === 0) return;
  const rows = new Map<string, UnlockedRow>();
  for (const { relied } of plans)
    for (const [key, each] of relied) if (!changed.has(key) && !rows.has(key)) rows.set(key, each);
  if (!(await areUnchanged(trx, [...rows.values()])))
    throw new ConcurrencyError('A record that the change relies on has changed');
}
