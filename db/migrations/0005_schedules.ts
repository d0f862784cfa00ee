import type { Knex } from 'knex';

/**
 * Schedules, and one run for each occurrence. `next_due_at` is the first occurrence that has no run
 * yet: all earlier ones are decided. The id of a run starts with its scheduled time, so that runs
 * sort by it.
 */
export const up = async (knex: Knex): Promise<void> =>
  void (await knex.raw(`
    CREATE TABLE schedules (
      id                     text COLLATE "C" PRIMARY KEY,
      tenant_id              text COLLATE "C" NOT NULL,
      name                   text NOT NULL,
      description            text NOT NULL,
      cron_expression        text NOT NULL,
      timezone               text NOT NULL,
      job_type               text COLLATE "C" NOT NULL,
      payload                json NOT NULL,
      retry_policy           json NOT NULL,
      overlap_policy         text COLLATE "C" NOT NULL CHECK (
        overlap_policy IN ('skip', 'bufferOne', 'allowAll', 'cancelOther')
      ),
      catchup_window_seconds integer NOT NULL CHECK (catchup_window_seconds >= 10),
      jitter_seconds         integer NOT NULL CHECK (jitter_seconds >= 0),
      start_at               timestamptz,
      end_at                 timestamptz,
      max_runs               integer CHECK (max_runs > 0),
      run_count              integer NOT NULL DEFAULT 0,
      enabled                boolean NOT NULL,
      paused_at              timestamptz,
      paused_by              text,
      pause_reason           text,
      owner                  json NOT NULL,
      next_due_at            timestamptz,
      last_run_id            text COLLATE "C",
      checked_at             timestamptz NOT NULL,
      created_by             text NOT NULL,
      created_at             timestamptz NOT NULL,
      updated_at             timestamptz NOT NULL,
      deleted_at             timestamptz,
      version                integer NOT NULL DEFAULT 1,
      CHECK (end_at >= start_at),
      CHECK (enabled = (paused_at IS NULL)),
      CHECK (deleted_at IS NULL OR next_due_at IS NULL)
    );
    CREATE INDEX schedules_tenant ON schedules (tenant_id, id DESC) WHERE deleted_at IS NULL;
    CREATE INDEX schedules_due ON schedules (next_due_at) WHERE next_due_at IS NOT NULL;
    CREATE INDEX schedules_checked ON schedules (checked_at) WHERE deleted_at IS NULL;

    CREATE TABLE schedule_runs (
      id          text COLLATE "C" PRIMARY KEY,
      schedule_id text COLLATE "C" NOT NULL REFERENCES schedules (id),
      tenant_id   text COLLATE "C" NOT NULL,
      kind        text COLLATE "C" NOT NULL CHECK (kind IN ('scheduled', 'trigger', 'backfill')),
      due_at      timestamptz NOT NULL,
      outcome     text COLLATE "C" NOT NULL CHECK (
        outcome IN ('fired', 'skipped', 'failed', 'buffered')
      ),
      reason      text COLLATE "C",
      caught_up   boolean NOT NULL,
      job_id      text COLLATE "C" REFERENCES jobs (id),
      actor_id    text NOT NULL,
      decided_at  timestamptz NOT NULL,
      CHECK ((outcome = 'fired') = (job_id IS NOT NULL)),
      CHECK ((outcome IN ('skipped', 'failed')) = (reason IS NOT NULL))
    );
    CREATE UNIQUE INDEX schedule_runs_due ON schedule_runs (schedule_id, due_at, kind)
      WHERE kind <> 'trigger';
    CREATE UNIQUE INDEX schedule_runs_buffered ON schedule_runs (schedule_id)
      WHERE outcome = 'buffered';
    CREATE INDEX schedule_runs_schedule ON schedule_runs (schedule_id, id DESC);
    CREATE INDEX schedule_runs_outcome ON schedule_runs (schedule_id, outcome, id DESC);
    CREATE INDEX schedule_runs_tenant ON schedule_runs (tenant_id, id DESC);
    CREATE INDEX schedule_runs_tenant_outcome ON schedule_runs (tenant_id, outcome, id DESC);
    CREATE INDEX schedule_runs_reason ON schedule_runs (reason, id DESC) WHERE reason IS NOT NULL;
    CREATE INDEX schedule_runs_requested ON schedule_runs (kind, id DESC) WHERE kind <> 'scheduled';
    CREATE INDEX schedule_runs_any_outcome ON schedule_runs (outcome, id DESC);

    CREATE INDEX jobs_of_schedule ON jobs (source_id)
      WHERE source_kind = 'schedule' AND status IN ('queued', 'running');
  `));

export const down = async (knex: Knex): Promise<void> =>
  void (await knex.raw(`
    DROP INDEX jobs_of_schedule;
    DROP TABLE schedule_runs;
    DROP TABLE schedules;
  `));
