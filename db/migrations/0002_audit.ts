import type { Knex } from 'knex';

/**
 * What `commit` writes beside a record: audit entry, event, outbox row, and the mark of an idempotency key.
 *
 * `audit_entries` is append-only. The one update that its triggers let through is the sealing of an entry:
 * `position` and `hash` from NULL to a value, once.
 *
 * `must_change` undoes a commit whose change found its record in another state than it was written for.
 */
export async function up(knex: Knex): Promise<void> {
  await knex.raw(`
    CREATE TABLE audit_entries (
      id           text COLLATE "C" PRIMARY KEY,
      tenant_id    text COLLATE "C" NOT NULL,
      actor_id     text NOT NULL,
      via          text COLLATE "C" NOT NULL,
      action       text COLLATE "C" NOT NULL,
      outcome      text COLLATE "C" NOT NULL CHECK (outcome IN ('done', 'denied', 'failed')),
      subject_type text COLLATE "C" NOT NULL,
      subject_id   text NOT NULL,
      before       json,
      after        json,
      request_id   text NOT NULL,
      address      text,
      at           timestamptz NOT NULL,
      position     bigint,
      hash         bytea,
      CHECK ((position IS NULL) = (hash IS NULL)),
      UNIQUE (tenant_id, position)
    );
    CREATE INDEX audit_entries_unsealed ON audit_entries (id) WHERE position IS NULL;
    CREATE INDEX audit_entries_tenant ON audit_entries (tenant_id, id DESC);
    CREATE INDEX audit_entries_subject ON audit_entries (subject_type, subject_id, id DESC);

    CREATE FUNCTION audit_entries_are_append_only() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN
      RAISE EXCEPTION 'audit_entries is append-only' USING ERRCODE = 'insufficient_privilege';
    END $$;
    CREATE TRIGGER audit_entries_no_delete BEFORE DELETE ON audit_entries
      FOR EACH ROW EXECUTE FUNCTION audit_entries_are_append_only();
    CREATE TRIGGER audit_entries_no_truncate BEFORE TRUNCATE ON audit_entries
      FOR EACH STATEMENT EXECUTE FUNCTION audit_entries_are_append_only();
    CREATE TRIGGER audit_entries_no_change
      BEFORE UPDATE OF id, tenant_id, actor_id, via, action, outcome, subject_type, subject_id, before, after,
                       request_id, address, at ON audit_entries
      FOR EACH ROW EXECUTE FUNCTION audit_entries_are_append_only();
    CREATE TRIGGER audit_entries_sealed_once BEFORE UPDATE OF position, hash ON audit_entries
      FOR EACH ROW WHEN (OLD.position IS NOT NULL OR NEW.position IS NULL)
      EXECUTE FUNCTION audit_entries_are_append_only();

    CREATE FUNCTION must_change(changed bigint) RETURNS void LANGUAGE plpgsql AS $$
    BEGIN
      IF changed = 0 THEN
        RAISE EXCEPTION 'there is nothing to change' USING ERRCODE = 'HF001';
      END IF;
    END $$;

    CREATE TABLE audit_heads (
      tenant_id text COLLATE "C" PRIMARY KEY,
      position  bigint NOT NULL,
      hash      bytea NOT NULL
    );

    CREATE TABLE events (
      id           text COLLATE "C" PRIMARY KEY,
      sequence     bigint UNIQUE,
      type         text COLLATE "C" NOT NULL,
      tenant_id    text COLLATE "C" NOT NULL,
      subject_type text COLLATE "C" NOT NULL,
      subject_id   text NOT NULL,
      actor_id     text NOT NULL,
      data         json NOT NULL,
      created_at   timestamptz NOT NULL
    );
    CREATE INDEX events_unpublished ON events (id) WHERE sequence IS NULL;
    CREATE INDEX events_subject ON events (subject_type, subject_id, id DESC);

    CREATE TABLE outbox (
      id           text COLLATE "C" PRIMARY KEY,
      workflow_id  text COLLATE "C" NOT NULL,
      task         json NOT NULL,
      available_at timestamptz NOT NULL,
      attempts     integer NOT NULL DEFAULT 0,
      last_error   text,
      created_at   timestamptz NOT NULL
    );
    CREATE INDEX outbox_available ON outbox (available_at);
    CREATE INDEX outbox_workflow ON outbox (workflow_id);

    CREATE TABLE idempotency_keys (
      actor_id     text NOT NULL,
      tenant_id    text COLLATE "C" NOT NULL,
      key          text NOT NULL,
      fingerprint  bytea NOT NULL,
      lease_until  timestamptz NOT NULL,
      subject_id   text,
      answer       json,
      created_at   timestamptz NOT NULL,
      PRIMARY KEY (actor_id, tenant_id, key)
    );
    CREATE INDEX idempotency_keys_created_at ON idempotency_keys (created_at);
  `);
}

export async function down(knex: Knex): Promise<void> {
  await knex.raw(`
    DROP TABLE idempotency_keys;
    DROP TABLE outbox;
    DROP TABLE events;
    DROP TABLE audit_heads;
    DROP TABLE audit_entries;
    DROP FUNCTION audit_entries_are_append_only;
    DROP FUNCTION must_change;
  `);
}
