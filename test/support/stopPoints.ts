import pg from 'pg';
import { eventually } from './eventually.ts';

/** Any number that no advisory lock of the product has. */
const FIRST_LOCK = 0x5709_0000;

/**
 * Points at which updates of a table stop, by name: an update stops when its condition, which
 * speaks of OLD and NEW, is true. What has stopped can be killed there.
 */
export async function stopUpdates(
  databaseUrl: string,
  table: string,
  conditions: Readonly<Record<string, string>>,
) {
  const client = new pg.Client({ connectionString: databaseUrl });
  await client.connect();
  await client.query(
    `CREATE FUNCTION stop_point() RETURNS trigger LANGUAGE plpgsql AS
       'BEGIN PERFORM pg_advisory_xact_lock_shared(TG_ARGV[0]::bigint); RETURN NEW; END'`,
  );
  const names = Object.keys(conditions);
  const lockOf = (name: string) => FIRST_LOCK + names.indexOf(name);
  for (const [name, condition] of Object.entries(conditions)) {
    await client.query(`SELECT pg_advisory_lock(${lockOf(name)})`);
    await client.query(
      `CREATE TRIGGER stop_${lockOf(name)} BEFORE UPDATE ON ${table} FOR EACH ROW
         WHEN (${condition}) EXECUTE FUNCTION stop_point(${lockOf(name)})`,
    );
  }
  const waiting = async (name: string) =>
    (
      await client.query(
        `SELECT pid FROM pg_locks WHERE locktype = 'advisory' AND NOT granted AND objid = ${lockOf(name)}`,
      )
    ).rows as { pid: number }[];
  return {
    /** Resolves when an update has stopped there. */
    async untilStopped(name: string): Promise<void> {
      await eventually(
        () => waiting(name),
        ({ length }) => length > 0,
        { withinMs: 45_000 },
      );
    },
    /** Undoes the updates that have stopped, as the end of their connection would, and stops no more. */
    async remove(): Promise<void> {
      for (const name of names)
        for (const { pid } of await waiting(name))
          await client.query('SELECT pg_terminate_backend($1)', [pid]);
      await client.query('SELECT pg_advisory_unlock_all()');
      await client.query('DROP FUNCTION stop_point() CASCADE');
      await client.end();
    },
  };
}
