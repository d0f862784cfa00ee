import type { Knex } from './knex.ts';
import type { OwedTask } from './unitOfWork.ts';

export type ClaimedTask<Task extends OwedTask> = { id: string; task: Task; attempts: number };

/** Takes due rows for `leaseMs`: whoever dies with them loses them to another relay after that. */
export async function claimOutbox<Task extends OwedTask>(
  db: Knex,
  { now, leaseMs, limit }: { now: Date; leaseMs: number; limit: number },
): Promise<ClaimedTask<Task>[]> {
  const leased = new Date(now.getTime() + leaseMs);
  const result = await db.raw<{ rows: ClaimedTask<Task>[] }>(
    `UPDATE outbox SET available_at = ?, attempts = attempts + 1
     WHERE id IN (SELECT id FROM outbox WHERE available_at <= ? ORDER BY available_at LIMIT ?
                  FOR UPDATE SKIP LOCKED)
     RETURNING id, task, attempts`,
    [leased, now, limit],
  );
  return result.rows.sort((a, b) => (a.id < b.id ? -1 : 1));
}

/** Calls that were made are owed no more. */
export const deleteOutbox = async (db: Knex, ids: readonly string[]): Promise<void> =>
  void (await db('outbox')
    .whereIn('id', [...ids])
    .delete());

/** Puts a call that failed back until `availableAt`. */
export const postponeOutbox = async (
  db: Knex,
  id: string,
  availableAt: Date,
  error: string,
): Promise<void> =>
  void (await db('outbox')
    .where({ id })
    .update({ available_at: availableAt, last_error: error.slice(0, 1_000) }));

/** Counts rows that are due. */
export async function countDueOutbox(db: Knex, now: Date): Promise<number> {
  const [row] = await db('outbox')
    .where('available_at', '<=', now)
    .count<{ count: number }[]>('* as count');
  return row?.count ?? 0;
}
