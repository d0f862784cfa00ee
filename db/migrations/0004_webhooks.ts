import type { Knex } from 'knex';

/** Prefixes of event types that get the prefix of their area. */
const RENAMED: Readonly<Record<string, string>> = {
  assignment: 'rbac.assignment',
  mapping: 'rbac.mapping',
  role: 'rbac.role',
  provider: 'auth.provider',
  user: 'auth.user',
};

/**
 * Publishing of events, and webhooks with their deliveries.
 *
 * An event gets its `sequence` after its commit, under the lock of `event_head`. So sequences
 * become visible in their order. A delivery waits without a job until its webhook has a free slot.
 */
export async function up(knex: Knex): Promise<void> {
  await knex.raw(`
    CREATE TABLE event_head (
      single   boolean PRIMARY KEY DEFAULT true CHECK (single),
      sequence bigint NOT NULL
    );
    INSERT INTO event_head (sequence) VALUES (0);

    DROP INDEX events_subject;
    CREATE INDEX events_tenant ON events (tenant_id, sequence DESC) WHERE sequence IS NOT NULL;
    CREATE INDEX events_type ON events (type, sequence DESC) WHERE sequence IS NOT NULL;
    CREATE INDEX events_subject ON events (subject_id, sequence DESC) WHERE sequence IS NOT NULL;
    CREATE INDEX events_created_at ON events (created_at) WHERE sequence IS NOT NULL;

    CREATE TABLE webhooks (
      id                    text COLLATE "C" PRIMARY KEY,
      tenant_id             text COLLATE "C" NOT NULL,
      endpoint_url          text NOT NULL,
      description           text NOT NULL,
      event_types           text[] NOT NULL CHECK (cardinality(event_types) > 0),
      enabled               boolean NOT NULL,
      retry_policy          json NOT NULL,
      secret                text NOT NULL,
      previous_secret       text,
      previous_secret_until timestamptz,
      enabled_at            timestamptz NOT NULL,
      failing_since         timestamptz,
      disabled_at           timestamptz,
      disabled_reason       text COLLATE "C"
                            CHECK (disabled_reason IN ('request', 'endpoint_removed', 'failing')),
      cancel_before         timestamptz,
      cancel_reason         text COLLATE "C",
      created_by            text NOT NULL,
      created_at            timestamptz NOT NULL,
      updated_at            timestamptz NOT NULL,
      deleted_at            timestamptz,
      version               integer NOT NULL DEFAULT 1,
      CHECK (enabled = (disabled_at IS NULL)),
      CHECK ((disabled_at IS NULL) = (disabled_reason IS NULL)),
      CHECK ((cancel_before IS NULL) = (cancel_reason IS NULL)),
      CHECK (deleted_at IS NULL OR NOT enabled)
    );
    CREATE INDEX webhooks_tenant ON webhooks (tenant_id, id DESC) WHERE deleted_at IS NULL;
    CREATE INDEX webhooks_enabled ON webhooks (tenant_id) WHERE enabled;
    CREATE INDEX webhooks_cancelling ON webhooks (id) WHERE cancel_before IS NOT NULL;

    CREATE TABLE deliveries (
      id            text COLLATE "C" PRIMARY KEY,
      tenant_id     text COLLATE "C" NOT NULL,
      webhook_id    text COLLATE "C" NOT NULL REFERENCES webhooks (id),
      event_id      text COLLATE "C" NOT NULL REFERENCES events (id),
      job_id        text COLLATE "C" REFERENCES jobs (id),
      status        text COLLATE "C" NOT NULL
                    CHECK (status IN ('pending', 'succeeded', 'failed', 'cancelled')),
      reason        text COLLATE "C",
      replay_job_id text COLLATE "C",
      in_flight     boolean NOT NULL DEFAULT false,
      queued_at     timestamptz NOT NULL,
      created_at    timestamptz NOT NULL,
      updated_at    timestamptz NOT NULL,
      UNIQUE (event_id, webhook_id)
    );
    CREATE INDEX deliveries_webhook ON deliveries (webhook_id, id DESC);
    CREATE INDEX deliveries_status ON deliveries (webhook_id, status, id DESC);
    CREATE INDEX deliveries_job ON deliveries (job_id);
    CREATE INDEX deliveries_in_flight ON deliveries (webhook_id)
      WHERE status = 'pending' AND in_flight;
    CREATE INDEX deliveries_without_job ON deliveries (webhook_id, id)
      WHERE status = 'pending' AND job_id IS NULL;

    CREATE TABLE delivery_attempts (
      delivery_id        text COLLATE "C" NOT NULL REFERENCES deliveries (id),
      number             integer NOT NULL,
      job_id             text COLLATE "C" NOT NULL,
      started_at         timestamptz NOT NULL,
      finished_at        timestamptz,
      duration_ms        integer,
      http_status        integer,
      error              json,
      request_headers    json,
      response_body      text,
      response_truncated boolean,
      PRIMARY KEY (delivery_id, number)
    );
  `);
  await rename(knex, Object.entries(RENAMED));
}

export async function down(knex: Knex): Promise<void> {
  await rename(
    knex,
    Object.entries(RENAMED).map(([before, after]) => [after, before]),
  );
  await knex.raw(`
    DROP TABLE delivery_attempts;
    DROP TABLE deliveries;
    DROP TABLE webhooks;
    DROP INDEX events_created_at;
    DROP INDEX events_subject;
    DROP INDEX events_type;
    DROP INDEX events_tenant;
    CREATE INDEX events_subject ON events (subject_type, subject_id, id DESC);
    UPDATE events SET sequence = NULL;
    DROP TABLE event_head;
  `);
}

async function rename(knex: Knex, names: readonly (readonly [string, string])[]): Promise<void> {
  for (const [before, after] of names) {
    await knex.raw(`UPDATE events SET type = ? || substr(type, length(?) + 1) WHERE type LIKE ?`, [
      after,
      before,
      `${before}.%`,
    ]);
  }
}
