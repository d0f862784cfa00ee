import type { Knex } from 'knex';

/**
 * Job types that runners announce, the pools and runners, and the attempts that runners make.
 * `jobs.pool` is empty for jobs that the worker runs itself; slots are counted by pool. A token of the
 * kind `runner` names the pools whose jobs it may take.
 */
export async function up(knex: Knex): Promise<void> {
  await knex.raw(`
    CREATE TABLE pools (
      name         text COLLATE "C" PRIMARY KEY,
      description  text NOT NULL,
      accept_types text[] NOT NULL,
      tenant_share_percent integer,
      created_by   text COLLATE "C" NOT NULL,
      created_at   timestamptz NOT NULL,
      updated_at   timestamptz NOT NULL,
      version      integer NOT NULL
    );
    CREATE TABLE job_types (
      name        text COLLATE "C" PRIMARY KEY,
      pool        text COLLATE "C" NOT NULL REFERENCES pools DEFERRABLE,
      state       text COLLATE "C" NOT NULL CHECK (state IN ('waiting', 'accepted', 'disabled')),
      shape       text COLLATE "C",
      digest      text COLLATE "C",
      definition  json,
      accepted_by text COLLATE "C",
      accepted_at timestamptz,
      created_at  timestamptz NOT NULL,
      updated_at  timestamptz NOT NULL,
      version     integer NOT NULL,
      CHECK ((state = 'waiting') = (shape IS NULL))
    );
    CREATE TABLE job_type_versions (
      name          text COLLATE "C" NOT NULL REFERENCES job_types ON DELETE CASCADE DEFERRABLE,
      digest        text COLLATE "C" NOT NULL,
      shape         text COLLATE "C" NOT NULL,
      definition    json NOT NULL,
      first_seen_at timestamptz NOT NULL,
      PRIMARY KEY (name, digest)
    );
    CREATE TABLE runners (
      id         text COLLATE "C" PRIMARY KEY,
      process_id text COLLATE "C" NOT NULL,
      pool       text COLLATE "C" NOT NULL REFERENCES pools DEFERRABLE,
      token_id   text COLLATE "C" NOT NULL,
      name       text NOT NULL,
      version    text NOT NULL,
      slots      integer NOT NULL,
      types      json NOT NULL,
      address    text COLLATE "C",
      started_at timestamptz NOT NULL,
      seen_at    timestamptz NOT NULL,
      UNIQUE (process_id, pool)
    );
    CREATE INDEX runners_seen ON runners (pool, seen_at);
    CREATE TABLE remote_attempts (
      job_id          text COLLATE "C" PRIMARY KEY REFERENCES jobs ON DELETE CASCADE DEFERRABLE,
      attempt         integer NOT NULL,
      run_id          text COLLATE "C" NOT NULL,
      runner_id       text COLLATE "C" NOT NULL,
      token_id        text COLLATE "C" NOT NULL,
      token_hash      bytea NOT NULL,
      digest          text COLLATE "C" NOT NULL,
      concurrency_key text COLLATE "C",
      lease_ms        integer NOT NULL,
      leased_until    timestamptz NOT NULL,
      ends_at         timestamptz NOT NULL,
      lines_received  integer NOT NULL DEFAULT 0,
      began_at        timestamptz NOT NULL,
      answer          json
    );
    CREATE INDEX remote_attempts_concurrency ON remote_attempts (concurrency_key)
      WHERE concurrency_key IS NOT NULL AND answer IS NULL;
    ALTER TABLE jobs
      ADD pool text COLLATE "C" NOT NULL DEFAULT '',
      ADD type_digest text COLLATE "C",
      ADD waiting_reported_at timestamptz;
    DROP INDEX jobs_slots;
    CREATE INDEX jobs_slots ON jobs (slot, pool, tenant_id, id)
      WHERE slot IS NOT NULL AND status IN ('queued', 'running');
    CREATE INDEX jobs_waiting_for_runner ON jobs (created_at)
      WHERE status = 'queued' AND pool <> '' AND waiting_reported_at IS NULL;
    CREATE INDEX jobs_remote_unfinished ON jobs (type, id)
      WHERE status IN ('queued', 'running') AND pool <> '';
    ALTER TABLE tokens ADD pools text[], DROP CONSTRAINT tokens_kind_check,
      ADD CONSTRAINT tokens_kind_check CHECK (kind IN ('personal', 'service', 'runner')),
      ADD CHECK ((kind = 'runner') = (pools IS NOT NULL));
  `);
}

export async function down(knex: Knex): Promise<void> {
  await knex.raw(`
    DELETE FROM tokens WHERE kind = 'runner';
    ALTER TABLE tokens DROP CONSTRAINT tokens_kind_check, DROP pools,
      ADD CONSTRAINT tokens_kind_check CHECK (kind IN ('personal', 'service'));
    DROP INDEX jobs_slots, jobs_waiting_for_runner, jobs_remote_unfinished;
    ALTER TABLE jobs DROP pool, DROP type_digest, DROP waiting_reported_at;
    CREATE INDEX jobs_slots ON jobs (slot, tenant_id, id)
      WHERE slot IS NOT NULL AND status IN ('queued', 'running');
    DROP TABLE remote_attempts, runners, job_type_versions, job_types, pools;
  `);
}
