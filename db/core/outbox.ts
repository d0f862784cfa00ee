import type { Knex } from './knex.ts';
import { prepared } from './prepared.ts';
import type { OutboxTask } from '../../domain/dispatch/tasks.ts';

export type ClaimedTask = { id: string; task: OutboxTask; attempts: number };

/**
 * The oldest due tasks, among which a claim chooses: it must not read all those that have piled up.
 * A tenant waits while all of these are of others.
 */
const WINDOW = 2_000;

/** SQL: the tenant that a task is for, as `tenantOfTask`. Tasks of version 0.2 have it only in starts. */
const TENANT = `COALESCE(task ->> 'tenantId', task -> 'attributes' ->> 'tenant')`;

/**
 * Claims due tasks for `leaseMs`, of each tenant in turn. If the process dies, another relay claims
 * them after that time.
 */
export async function claimOutbox(
  db: Knex,
  { now, leaseMs, limit }: { now: Date; leaseMs: number; limit: number },
): Promise<ClaimedTask[]> {
  const leased = new Date(now.getTime() + leaseMs);
  const result = await db.raw<{ rows: ClaimedTask[] }>(
    `WITH due AS MATERIALIZED (
       SELECT id, available_at, row_number() OVER (
         PARTITION BY ${TENANT} ORDER BY available_at) AS nth
       FROM (SELECT id, available_at, task FROM outbox WHERE available_at <= ?
             ORDER BY available_at LIMIT ?) AS oldest
     )
     UPDATE outbox SET available_at = ?, attempts = attempts + 1
     WHERE id IN (SELECT o.id FROM outbox AS o JOIN due USING (id) WHERE o.available_at <= ?
                  ORDER BY due.nth, due.available_at LIMIT ? FOR UPDATE OF o SKIP LOCKED)
     RETURNING id, task, attempts`,
    [now, WINDOW, leased, now, limit],
  );
  return result.rows.sort((a, b) => (a.id < b.id ? -1 : 1));
}

/**
 * Deletes the tasks whose calls have succeeded. It does not wait for the disk: a task that comes back
 * in a crash of PostgreSQL is repeated without effect.
 */
export const deleteOutbox = async (db: Knex, ids: readonly string[]): Promise<void> =>
  void (await prepared(
    db,
    `WITH unsynced AS MATERIALIZED (SELECT set_config('synchronous_commit', 'off', true))
     DELETE FROM outbox USING unsynced WHERE id = ANY (?::text[])`,
    [[...ids]],
  ));

/** Deletes the starts of a workflow that wait in the outbox, because another start replaces them. */
export const deleteStarts = async (trx: Knex, workflowId: string): Promise<void> =>
  void (await trx('outbox')
    .where({ workflow_id: workflowId })
    .whereRaw("task ->> 'kind' = 'start'")
    .delete());

/** Postpones a failed task until `availableAt`. */
export const postponeOutbox = async (
  db: Knex,
  id: string,
  availableAt: Date,
  error: string,
): Promise<void> =>
  void (await db('outbox')
    .where({ id })
    .update({ available_at: availableAt, last_error: error.slice(0, 1_000) }));

/** Counts the tasks that are due. */
export async function countDueOutbox(db: Knex, now: Date): Promise<number> {
  const [row] = await db('outbox')
    .where('available_at', '<=', now)
    .count<{ count: number }[]>('* as count');
  return row?.count ?? 0;
}
