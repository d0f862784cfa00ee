import type { Knex } from '../core/knex.ts';
import { prepared } from '../core/prepared.ts';

/** A worker announces itself more often than this, in seconds. */
export const WORKER_LIFETIME_SECONDS = 30;

/** A worker that ended without a word is remembered for this long, in seconds. */
export const WORKER_MEMORY_SECONDS = 3_600;

/** SQL: true for workers that have reported lately. */
const IS_RUNNING = `seen_at > now() - interval '${WORKER_LIFETIME_SECONDS} seconds'`;

/** What a worker offers: attempts of the lane `activity`, and deliveries. */
export type WorkerSlots = { activity: number; delivery: number };

/**
 * Says that a worker runs, what it offers, and which job types it knows. Also removes workers that ended without
 * a word.
 */
export const announceWorker = async (
  db: Knex,
  id: string,
  slots: WorkerSlots,
  jobTypes: readonly string[],
): Promise<void> =>
  void (await db.raw(
    `WITH ended AS (
       DELETE FROM workers WHERE id <> ? AND seen_at < now() - interval '${WORKER_MEMORY_SECONDS} seconds'
     )
     INSERT INTO workers (id, activity_slots, delivery_slots, job_types, seen_at)
     VALUES (?, ?, ?, ?, now())
     ON CONFLICT (id) DO UPDATE SET activity_slots = excluded.activity_slots,
       delivery_slots = excluded.delivery_slots, job_types = excluded.job_types,
       seen_at = excluded.seen_at`,
    [id, id, slots.activity, slots.delivery, [...jobTypes]],
  ));

/**
 * True if a worker that has reported within `seconds` knows a job type, or is of a version that does not say which
 * ones it knows.
 */
export async function isKnownToWorker(
  db: Knex,
  type: string,
  seconds = WORKER_LIFETIME_SECONDS,
): Promise<boolean> {
  const { rows }: { rows: unknown[] } = await prepared(
    db,
    `SELECT 1 FROM workers WHERE seen_at > now() - make_interval(secs => ?)
       AND (job_types IS NULL OR ? = ANY (job_types)) LIMIT 1`,
    [seconds, type],
  );
  return rows.length > 0;
}

export const removeWorker = async (db: Knex, id: string): Promise<void> =>
  void (await db('workers').where({ id }).delete());

/** What all running workers offer together; `fallback` while none has announced itself. */
export async function totalSlots(db: Knex, fallback: WorkerSlots): Promise<WorkerSlots> {
  const { rows }: { rows: WorkerSlots[] } = await prepared(
    db,
    `SELECT COALESCE(sum(activity_slots), ?)::integer AS activity,
            COALESCE(sum(delivery_slots), ?)::integer AS delivery
     FROM workers WHERE ${IS_RUNNING}`,
    [fallback.activity, fallback.delivery],
  );
  return rows[0] ?? fallback;
}
