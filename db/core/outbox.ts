import type { Knex } from './knex.ts';
import { prepared } from './prepared.ts';
import type { OutboxTask } from '../../domain/dispatch/tasks.ts';
import { bindArray } from './sql.ts';

/** A claimed task. `availableAt`: since when it was due. */
export type ClaimedTask = { id: string; task: OutboxTask; attempts: number; availableAt: Date };

/**
 * The oldest due tasks, among which a claim chooses: it must not read all those that have piled up.
 * A tenant waits while all of these are of others.
 */
const WINDOW = 2_000;

/**
 * SQL: the tenant that a task is for, as `tenantOfTask`.
 * until 0.4: `task ->> 'tenantId'` is enough; tasks of version 0.2 have it only in the attributes of starts.
 */
const TENANT = `COALESCE(task ->> 'tenantId', task -> 'attributes' ->> 'tenant')`;

/**
 * Claims due tasks for `leaseMs`, and returns them in the order in which they are to be executed: of each tenant
 * in turn. If the process dies, another relay claims them after that time. What is due is decided by the clock of the
 * database, which also writes the times: those of the processes may differ. Tests pass another `now`.
 */
export async function claimOutbox(
  db: Knex,
  { leaseMs, limit, now = null }: { leaseMs: number; limit: number; now?: Date | null },
): Promise<ClaimedTask[]> {
  const { rows } = await db.raw<{ rows: ClaimedTask[] }>(
    `WITH clock AS MATERIALIZED (
       SELECT coalesce(?::timestamptz, clock_timestamp()) AS now
     ), due AS MATERIALIZED (
       SELECT id, available_at, row_number() OVER (
         PARTITION BY ${TENANT} ORDER BY available_at, id) AS nth
       FROM (SELECT id, available_at, task FROM outbox WHERE available_at <= (SELECT now FROM clock)
             ORDER BY available_at LIMIT ?) AS oldest
     ), chosen AS MATERIALIZED (
       SELECT o.id, due.nth, due.available_at FROM outbox AS o JOIN due USING (id)
       WHERE o.available_at <= (SELECT now FROM clock)
       ORDER BY due.nth, due.available_at LIMIT ? FOR UPDATE OF o SKIP LOCKED
     ), claimed AS (
       UPDATE outbox AS o SET available_at = (SELECT now FROM clock) + ? * interval '1 ms', attempts = attempts + 1
       FROM chosen WHERE o.id = chosen.id
       RETURNING o.id, o.task, o.attempts, chosen.nth, chosen.available_at
     )
     SELECT id, task, attempts, available_at AS "availableAt" FROM claimed
     ORDER BY nth, available_at, id`,
    [now, WINDOW, limit, leaseMs],
  );
  return rows;
}

/** Returns claimed tasks that were not tried: they are due as before. */
export const releaseOutbox = async (db: Knex, tasks: readonly ClaimedTask[]): Promise<void> =>
  void (await db.raw(
    `UPDATE outbox AS o SET available_at = t.available_at, attempts = o.attempts - 1
     FROM unnest(?::text[], ?::timestamptz[]) AS t (id, available_at) WHERE o.id = t.id`,
    [tasks.map(({ id }) => id), bindArray(tasks.map(({ availableAt }) => availableAt))],
  ));

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

/** Postpones a failed task for `waitMs`. */
export const postponeOutbox = async (
  db: Knex,
  id: string,
  waitMs: number,
  error: string,
): Promise<void> =>
  void (await db('outbox')
    .where({ id })
    .update({
      available_at: db.raw(`clock_timestamp() + ? * interval '1 ms'`, [waitMs]),
      last_error: error.slice(0, 1_000),
    }));

/** SQL: a task is due. With a subquery, the index on the time is used. */
const IS_DUE = 'available_at <= (SELECT clock_timestamp())';

/** True when tasks are due. */
export async function hasDueOutbox(db: Knex): Promise<boolean> {
  const { rows }: { rows: object[] } = await prepared(
    db,
    `SELECT 1 FROM outbox WHERE ${IS_DUE} LIMIT 1`,
    [],
  );
  return rows.length > 0;
}

/** Most tasks that are counted. */
const MAX_COUNTED = 10_000;

/** Counts the tasks that are due, up to 10,000. */
export async function countDueOutbox(db: Knex): Promise<number> {
  const { rows } = await db.raw<{ rows: [{ count: number }] }>(
    `SELECT count(*) FROM (SELECT FROM outbox WHERE ${IS_DUE} LIMIT ?) AS due`,
    [MAX_COUNTED],
  );
  return rows[0].count;
}

/** The workflow ids among these for which the outbox still has a task. */
export async function withPendingTask(
  db: Knex,
  workflowIds: readonly string[],
): Promise<Set<string>> {
  return new Set<string>(
    await db('outbox')
      .whereIn('workflow_id', [...workflowIds])
      .distinct()
      .pluck('workflow_id'),
  );
}
