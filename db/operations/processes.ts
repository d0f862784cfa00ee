import type { Knex } from '../core/knex.ts';
import { prepared } from '../core/prepared.ts';

/** A process announces itself more often than this, in seconds. */
const PROCESS_LIFETIME_SECONDS = 30;

/** SQL: true for processes that have reported lately. */
const IS_RUNNING = `seen_at > now() - interval '${PROCESS_LIFETIME_SECONDS} seconds'`;

/** Where a process listens. `addresses`: those of its machine, if it listens at all of them. */
export type ListeningAt = { host: string; port: number; addresses: string[] };

/** What a process says of itself: digests of settings, by group, and where it listens. */
export type AnnouncedProcess = {
  id: string;
  instance: string;
  machine: string;
  settings: Readonly<Record<string, string>>;
  endpoints: readonly ListeningAt[];
};

/** Says that a process runs. Also removes processes that ended without a word. */
export const announceProcess = async (
  db: Knex,
  { id, instance, machine, settings, endpoints }: AnnouncedProcess,
): Promise<void> =>
  void (await prepared(
    db,
    `WITH ended AS (DELETE FROM processes WHERE id <> ? AND seen_at < now() - interval '1 hour')
     INSERT INTO processes (id, instance, machine, settings, endpoints, seen_at) VALUES (?, ?, ?, ?, ?, now())
     ON CONFLICT (id) DO UPDATE SET instance = excluded.instance, machine = excluded.machine,
       settings = excluded.settings, endpoints = excluded.endpoints, seen_at = excluded.seen_at`,
    [id, id, instance, machine, JSON.stringify(settings), JSON.stringify(endpoints)],
  ));

export const removeProcess = async (db: Knex, id: string): Promise<void> =>
  void (await db('processes').where({ id }).delete());

/** The other processes that run now. */
export async function listOtherProcesses(db: Knex, id: string): Promise<AnnouncedProcess[]> {
  const { rows }: { rows: AnnouncedProcess[] } = await prepared(
    db,
    `SELECT id, instance, machine, settings, endpoints FROM processes
     WHERE id <> ? AND ${IS_RUNNING} ORDER BY id`,
    [id],
  );
  return rows;
}

/** A running process whose settings of a group are others; undefined if there is none. */
export async function findDifferentProcess(
  db: Knex,
  group: string,
  digest: string,
): Promise<string | undefined> {
  const { rows }: { rows: { instance: string }[] } = await prepared(
    db,
    `SELECT instance FROM processes WHERE settings ->> ? <> ? AND ${IS_RUNNING} LIMIT 1`,
    [group, digest],
  );
  return rows[0]?.instance;
}
