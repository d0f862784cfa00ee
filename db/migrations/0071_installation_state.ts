import type { Knex } from 'knex';

/**
 * What waits, what is late and which backups there are, as last measured: all processes show the same
 * values in their metrics, and one of them measures. Without WAL: after a crash it is measured again.
 * `jobs.trace` is the trace that a job was created in: its attempts continue it.
 */
export const up = async (knex: Knex): Promise<void> =>
  void (await knex.raw(`
    CREATE UNLOGGED TABLE installation_state (
      single      boolean PRIMARY KEY DEFAULT true CHECK (single),
      measured_at timestamptz NOT NULL,
      state       json NOT NULL
    );
    ALTER TABLE jobs ADD trace text COLLATE "C";
  `));

export const down = async (knex: Knex): Promise<void> =>
  void (await knex.raw('ALTER TABLE jobs DROP trace; DROP TABLE installation_state'));
