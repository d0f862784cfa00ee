import type { Knex } from 'knex';

/** References that only remember: the row stays when the job that it names is purged. */
const REMEMBERED: readonly (readonly [string, string])[] = [
  ['jobs', 'retry_of'],
  ['deliveries', 'job_id'],
  ['schedule_runs', 'job_id'],
  ['approvals', 'job_id'],
];

/**
 * How long records are kept. `purge_marks` has what was purged, by tenant, kind and job type: up to
 * which id, and for events up to which sequence. A restore does not bring these rows back.
 * `purge_progress` has the day and the periods for which a tenant's purge is complete.
 * `purge_state.complete_at` is the start of the last purge that left nothing due.
 *
 * A job remains after its payload and result: `data_purged_at`.
 *
 * `down` fails after a purge of jobs that other records name.
 */
export async function up(knex: Knex): Promise<void> {
  await knex.raw(`
    CREATE TABLE retention_settings (
      tenant_id  text COLLATE "C" PRIMARY KEY,
      days       jsonb NOT NULL,
      job_types  jsonb NOT NULL,
      created_at timestamptz NOT NULL,
      updated_at timestamptz NOT NULL,
      version    integer NOT NULL
    );
    CREATE TABLE purge_marks (
      tenant_id      text COLLATE "C" NOT NULL,
      kind           text COLLATE "C" NOT NULL,
      job_type       text COLLATE "C" NOT NULL,
      until_id       text COLLATE "C" NOT NULL,
      until_sequence bigint,
      purged_at      timestamptz NOT NULL,
      PRIMARY KEY (kind, tenant_id, job_type)
    );
    CREATE TABLE purge_progress (
      tenant_id text COLLATE "C" PRIMARY KEY,
      done_for  text COLLATE "C" NOT NULL
    );
    CREATE TABLE purge_state (
      single      boolean PRIMARY KEY DEFAULT true CHECK (single),
      next_at     timestamptz NOT NULL,
      complete_at timestamptz NOT NULL
    );
    INSERT INTO purge_state (next_at, complete_at) VALUES (now() + interval '1 hour', now());
    ALTER TABLE jobs ADD data_purged_at timestamptz;
  `);
  for (const [table, column] of REMEMBERED)
    await knex.raw(`ALTER TABLE ${table} DROP CONSTRAINT IF EXISTS ${table}_${column}_fkey`);
}

export async function down(knex: Knex): Promise<void> {
  for (const [table, column] of REMEMBERED)
    await knex.raw(
      `ALTER TABLE ${table} ADD CONSTRAINT ${table}_${column}_fkey
         FOREIGN KEY (${column}) REFERENCES jobs (id) DEFERRABLE INITIALLY IMMEDIATE`,
    );
  await knex.raw(`
    ALTER TABLE jobs DROP data_purged_at;
    DROP TABLE purge_state, purge_progress, purge_marks, retention_settings;
  `);
}
