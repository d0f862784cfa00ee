import { expect } from '@jest/globals';
import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import pg from 'pg';
import { eventually } from './eventually.ts';

/** Any number that no advisory lock of the product has; the next ones follow. */
let nextLock = 0x5709_0000;

/**
 * Kills what `start` runs when it stops before a command that creates or drops something, such as
 * `CREATE INDEX`, at which `condition` is true.
 */
export async function killBefore(
  databaseUrl: string,
  { command, condition }: { command: string; condition: string },
  start: () => ChildProcess,
): Promise<void> {
  const lock = nextLock++;
  const client = new pg.Client({ connectionString: databaseUrl });
  await client.connect();
  await client.query(`SELECT pg_advisory_lock(${lock})`);
  await client.query(
    `CREATE FUNCTION stop_command() RETURNS event_trigger LANGUAGE plpgsql AS
       'BEGIN IF ${condition} THEN PERFORM pg_advisory_xact_lock_shared(${lock}); END IF; END';
     CREATE EVENT TRIGGER stop_command ON ddl_command_start WHEN TAG IN ('${command}')
       EXECUTE FUNCTION stop_command()`,
  );
  const child = start();
  const exited = once(child, 'exit');
  await eventually(
    () =>
      client.query(
        `SELECT FROM pg_locks AS l JOIN pg_database AS d ON d.oid = l.database
         WHERE datname = current_database() AND NOT granted AND locktype = 'advisory' AND objid = ${lock}`,
      ),
    ({ rows }) => rows.length > 0 || child.exitCode !== null,
    { withinMs: 45_000 },
  );
  child.kill('SIGKILL');
  expect(await exited).toEqual([null, 'SIGKILL']);
  await client.query('DROP EVENT TRIGGER stop_command; DROP FUNCTION stop_command()');
  await client.end();
}

/**
 * Points at which updates (or inserts) of a table stop, by name: one stops when its condition, which
 * speaks of OLD and NEW, is true. What has stopped can be killed there.
 */
export async function stopUpdates(
  databaseUrl: string,
  table: string,
  conditions: Readonly<Record<string, string>>,
  { on = 'UPDATE' }: { on?: 'INSERT' | 'UPDATE' } = {},
) {
  const client = new pg.Client({ connectionString: databaseUrl });
  await client.connect();
  await client.query(
    `CREATE OR REPLACE FUNCTION stop_point() RETURNS trigger LANGUAGE plpgsql AS
       'BEGIN PERFORM pg_advisory_xact_lock_shared(TG_ARGV[0]::bigint); RETURN NEW; END'`,
  );
  const locks = new Map(Object.keys(conditions).map((name) => [name, nextLock++]));
  for (const [name, lock] of locks) {
    await client.query(`SELECT pg_advisory_lock(${lock})`);
    await client.query(
      `CREATE TRIGGER stop_${lock} BEFORE ${on} ON ${table} FOR EACH ROW
         WHEN (${conditions[name]}) EXECUTE FUNCTION stop_point(${lock})`,
    );
  }
  const waiting = async (lock: number | undefined) =>
    (
      await client.query(
        `SELECT pid FROM pg_locks WHERE locktype = 'advisory' AND NOT granted AND objid = ${lock}
           AND database = (SELECT oid FROM pg_database WHERE datname = current_database())`,
      )
    ).rows as { pid: number }[];
  async function release(): Promise<void> {
    for (const lock of locks.values())
      for (const { pid } of await waiting(lock))
        await client.query('SELECT pg_terminate_backend($1)', [pid]);
    await client.query('SELECT pg_advisory_unlock_all()');
  }
  return {
    names: [...locks.keys()],
    /** Resolves when an update has stopped there. */
    async untilStopped(name: string): Promise<void> {
      await eventually(
        () => waiting(locks.get(name)),
        ({ length }) => length > 0,
        { withinMs: 45_000 },
      );
    },
    /** Undoes the updates that have stopped, as the end of their connection would, and stops no more. */
    release,
    /** The same, and drops the triggers: it waits for transactions that have the table. */
    async remove(): Promise<void> {
      await release();
      for (const lock of locks.values())
        await client.query(`DROP TRIGGER stop_${lock} ON ${table}`);
      await client.end();
    },
  };
}
