import type { Knex } from 'knex';

/**
 * Ids sort by creation time in byte order, so id columns are `COLLATE "C"` and lists are paged by
 * primary key. JSON from callers is `json`, not `jsonb`, so that it is returned exactly as sent.
 */
export async function up(knex: Knex): Promise<void> {
  await knex.raw(`
    CREATE TABLE jobs (
      id                  text COLLATE "C" PRIMARY KEY,
      type                text COLLATE "C" NOT NULL,
      tenant_id           text COLLATE "C" NOT NULL,
      status              text COLLATE "C" NOT NULL
                          CHECK (status IN ('queued', 'running', 'succeeded', 'failed', 'cancelled')),
      payload             json NOT NULL,
      retry_policy        json NOT NULL,
      result              json,
      error               json,
      progress            json,
      attempts            integer NOT NULL DEFAULT 0,
      log_count           integer NOT NULL DEFAULT 0,
      run_id              text COLLATE "C",
      created_by          text COLLATE "C" NOT NULL,
      authority           json NOT NULL,
      source_kind         text COLLATE "C" NOT NULL
                          CHECK (source_kind IN ('api', 'schedule', 'approval', 'webhook', 'system')),
      source_id           text COLLATE "C",
      retry_of            text COLLATE "C" REFERENCES jobs (id),
      cancel_requested_at timestamptz,
      created_at          timestamptz NOT NULL,
      updated_at          timestamptz NOT NULL,
      started_at          timestamptz,
      finished_at         timestamptz,
      checked_at          timestamptz NOT NULL,
      version             integer NOT NULL DEFAULT 1,
      CHECK ((finished_at IS NULL) = (status IN ('queued', 'running')))
    );
    CREATE INDEX jobs_tenant ON jobs (tenant_id, id DESC);
    CREATE INDEX jobs_status ON jobs (status, id DESC);
    CREATE INDEX jobs_type ON jobs (type, id DESC);
    CREATE INDEX jobs_created_by ON jobs (created_by, id DESC);
    CREATE INDEX jobs_retry_of ON jobs (retry_of, id DESC) WHERE retry_of IS NOT NULL;
    CREATE INDEX jobs_unsettled ON jobs (checked_at) WHERE status IN ('queued', 'running');

    CREATE TABLE job_logs (
      job_id  text COLLATE "C" NOT NULL REFERENCES jobs (id) ON DELETE CASCADE,
      line    integer NOT NULL,
      attempt integer NOT NULL,
      level   text COLLATE "C" NOT NULL CHECK (level IN ('debug', 'info', 'warn', 'error')),
      message text NOT NULL,
      data    json,
      at      timestamptz NOT NULL,
      PRIMARY KEY (job_id, line)
    );
  `);
}

export async function down(knex: Knex): Promise<void> {
  await knex.raw('DROP TABLE job_logs; DROP TABLE jobs;');
}
