import type { Knex } from 'knex';

/**
 * Backups, and the jobs that load archives. `pending` is the attempt that writes an archive, and
 * its upload once that is complete. `check_at` is when the reconciler last checked a backup.
 *
 * All foreign keys become deferrable, so that a restore can insert rows in any order. They are
 * still checked immediately otherwise. Archives of older versions are migrated in a schema of their
 * own, whose tables have no foreign keys.
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
      retention      jsonb NOT NULL,
      status         text COLLATE "C" NOT NULL
        CHECK (status IN ('queued', 'running', 'completed', 'failed', 'deleting', 'deleted')),
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
      restore_tested_at      timestamptz,
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
    CREATE INDEX backups_tenant ON backups (tenant_id, id DESC)
      WHERE status NOT IN ('deleting', 'deleted');
    CREATE INDEX backups_visible ON backups (id DESC) WHERE status NOT IN ('deleting', 'deleted');
    CREATE INDEX backups_series ON backups (tenant_id, label, id DESC) WHERE status = 'completed';
    CREATE UNIQUE INDEX backups_job ON backups (job_id) WHERE job_id IS NOT NULL;
    CREATE INDEX backups_unfinished ON backups (check_at)
      WHERE status IN ('queued', 'running', 'deleting') OR pending IS NOT NULL;

    CREATE TABLE restore_runs (
      job_id           text COLLATE "C" PRIMARY KEY,
      backup_id        text COLLATE "C" NOT NULL
        REFERENCES backups (id) DEFERRABLE INITIALLY DEFERRED,
      tenant_id        text COLLATE "C" NOT NULL,
      purpose          text COLLATE "C" NOT NULL
        CHECK (purpose IN ('validate', 'restore', 'verify')),
      report           json,
      plan_hash        text COLLATE "C",
      pre_restore_backup_id text COLLATE "C" REFERENCES backups (id) DEFERRABLE INITIALLY DEFERRED,
      outcome          json,
      done_at          timestamptz,
      created_at       timestamptz NOT NULL,
      CHECK ((outcome IS NULL) = (done_at IS NULL))
    );
    CREATE INDEX restore_runs_backup ON restore_runs (backup_id, job_id DESC);
    CREATE INDEX restore_runs_open ON restore_runs (job_id)
      WHERE purpose = 'restore' AND outcome IS NULL;
    CREATE INDEX jobs_of_backups ON jobs (id DESC) WHERE type LIKE 'backup.%';

    DO $$
    DECLARE reference record;
    BEGIN
      FOR reference IN SELECT conrelid::regclass AS of_table, conname FROM pg_constraint
        WHERE contype = 'f' AND NOT condeferrable AND connamespace = current_schema()::regnamespace
      LOOP
        EXECUTE format('ALTER TABLE %s ALTER CONSTRAINT %I DEFERRABLE INITIALLY IMMEDIATE',
          reference.of_table, reference.conname);
      END LOOP;
    END $$;
  `));

export const down = async (knex: Knex): Promise<void> =>
  void (await knex.raw(`
    DO $$
    DECLARE reference record;
    BEGIN
      FOR reference IN SELECT conrelid::regclass AS of_table, conname FROM pg_constraint
        WHERE contype = 'f' AND condeferrable AND NOT condeferred
          AND connamespace = current_schema()::regnamespace
      LOOP
        EXECUTE format('ALTER TABLE %s ALTER CONSTRAINT %I NOT DEFERRABLE',
          reference.of_table, reference.conname);
      END LOOP;
    END $$;
    DROP INDEX jobs_of_backups;
    DROP TABLE restore_runs, backups;
  `));
