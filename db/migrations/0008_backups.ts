import type { Knex } from 'knex';

/**
 * Backups, and what archives were loaded for. An archive belongs to its record from the moment at which it is begun:
 * `pending` is what is written and not yet an archive. `check_at` is when the reconciler looks next.
 *
 * References are made deferrable, so that a restore can put rows back in any order; they are checked as before otherwise.
 * Old archives are brought up to date by these migrations in a schema of their own, in which references are missing.
 */
export const up = async (knex: Knex): Promise<void> =>
  void (await knex.raw(`
    CREATE TABLE backups (
      id             text COLLATE "C" PRIMARY KEY,
      tenant_id      text COLLATE "C" NOT NULL,
      mode           text COLLATE "C" NOT NULL CHECK (mode IN ('full', 'partial')),
      sections       jsonb NOT NULL,
      includes       jsonb NOT NULL,
      engine         text COLLATE "C" NOT NULL CHECK (engine IN ('snapshot', 'portable')),
      label          text NOT NULL,
      keep           jsonb NOT NULL,
      status         text COLLATE "C" NOT NULL CHECK (status IN ('queued', 'running', 'completed', 'failed', 'deleting', 'deleted')),
      job_id         text COLLATE "C",
      store          text COLLATE "C" NOT NULL CHECK (store IN ('folder', 's3')),
      archive        text NOT NULL,
      pending        json,
      size_bytes     bigint,
      rows           bigint,
      manifest       json,
      schema_version text,
      app_version    text,
      snapshot_at    timestamptz,
      verified_at    timestamptz,
      proven_at      timestamptz,
      error          json,
      created_by     text NOT NULL,
      created_at     timestamptz NOT NULL,
      updated_at     timestamptz NOT NULL,
      finished_at    timestamptz,
      deleted_at     timestamptz,
      check_at       timestamptz NOT NULL,
      version        integer NOT NULL DEFAULT 1,
      CHECK ((status IN ('queued', 'running')) = (finished_at IS NULL)),
      CHECK ((status = 'deleted') = (deleted_at IS NOT NULL)),
      CHECK (status <> 'completed' OR size_bytes IS NOT NULL)
    );
    CREATE INDEX backups_tenant ON backups (tenant_id, id DESC) WHERE status NOT IN ('deleting', 'deleted');
    CREATE INDEX backups_there ON backups (id DESC) WHERE status NOT IN ('deleting', 'deleted');
    CREATE INDEX backups_series ON backups (tenant_id, label, id DESC) WHERE status = 'completed';
    CREATE UNIQUE INDEX backups_job ON backups (job_id) WHERE job_id IS NOT NULL;
    CREATE INDEX backups_unsettled ON backups (check_at) WHERE status IN ('queued', 'running', 'deleting') OR pending IS NOT NULL;

    CREATE TABLE restore_runs (
      job_id           text COLLATE "C" PRIMARY KEY,
      backup_id        text COLLATE "C" NOT NULL REFERENCES backups (id) DEFERRABLE INITIALLY DEFERRED,
      tenant_id        text COLLATE "C" NOT NULL,
      purpose          text COLLATE "C" NOT NULL CHECK (purpose IN ('validate', 'restore', 'verify')),
      report           json,
      plan_hash        text COLLATE "C",
      safety_backup_id text COLLATE "C" REFERENCES backups (id) DEFERRABLE INITIALLY DEFERRED,
      outcome          json,
      done_at          timestamptz,
      created_at       timestamptz NOT NULL,
      CHECK ((outcome IS NULL) = (done_at IS NULL))
    );
    CREATE INDEX restore_runs_backup ON restore_runs (backup_id, job_id DESC);
    CREATE INDEX restore_runs_open ON restore_runs (job_id) WHERE purpose = 'restore' AND outcome IS NULL;
    CREATE INDEX jobs_of_backups ON jobs (id DESC) WHERE type LIKE 'backup.%';

    DO $$
    DECLARE reference record;
    BEGIN
      FOR reference IN SELECT conrelid::regclass AS of_table, conname FROM pg_constraint
        WHERE contype = 'f' AND NOT condeferrable AND connamespace = current_schema()::regnamespace
      LOOP
        EXECUTE format('ALTER TABLE %s ALTER CONSTRAINT %I DEFERRABLE INITIALLY IMMEDIATE', reference.of_table, reference.conname);
      END LOOP;
    END $$;
  `));

export const down = async (knex: Knex): Promise<void> =>
  void (await knex.raw(`
    DO $$
    DECLARE reference record;
    BEGIN
      FOR reference IN SELECT conrelid::regclass AS of_table, conname FROM pg_constraint
        WHERE contype = 'f' AND condeferrable AND NOT condeferred AND connamespace = current_schema()::regnamespace
      LOOP
        EXECUTE format('ALTER TABLE %s ALTER CONSTRAINT %I NOT DEFERRABLE', reference.of_table, reference.conname);
      END LOOP;
    END $$;
    DROP INDEX jobs_of_backups;
    DROP TABLE restore_runs, backups;
  `));
