import type { Knex } from 'knex';

/**
 * API tokens and service accounts. A service account is a user without a provider; `owner_id` is the
 * person who is responsible for it.
 *
 * A token has at most two secrets: the one before the last rotation is valid until
 * `previous_valid_until`. Rows are never deleted, so that no restore brings back a revoked token, and
 * they refer to users without a constraint for the same reason. `tenant_id` is that of the owner.
 */
export async function up(knex: Knex): Promise<void> {
  await knex.raw(`
    ALTER TABLE users ADD COLUMN owner_id text COLLATE "C",
      ADD CHECK (owner_id IS NULL OR provider_id = 'service');
    CREATE UNIQUE INDEX users_service_name ON users (tenant_id, lower(username)) WHERE provider_id = 'service';
    CREATE INDEX users_service ON users (id DESC) WHERE provider_id = 'service';

    CREATE TABLE tokens (
      id                   text COLLATE "C" PRIMARY KEY,
      kind                 text COLLATE "C" NOT NULL CHECK (kind IN ('personal', 'service')),
      user_id              text COLLATE "C" NOT NULL,
      tenant_id            text COLLATE "C" NOT NULL,
      name                 text NOT NULL,
      hash                 bytea NOT NULL UNIQUE,
      previous_hash        bytea UNIQUE,
      previous_valid_until timestamptz,
      permissions          text[],
      resource_scopes      jsonb,
      job_types            text[],
      read_only            boolean NOT NULL,
      allowed_networks     text[],
      requests_per_minute  integer,
      request_tenant_id    text COLLATE "C" NOT NULL,
      expires_at           timestamptz NOT NULL,
      rotated_at           timestamptz,
      last_used_at         timestamptz,
      last_used_address    text,
      warned_at            timestamptz,
      disabled_at          timestamptz,
      revoked_at           timestamptz,
      revoked_by           text,
      created_by           text NOT NULL,
      created_at           timestamptz NOT NULL,
      updated_at           timestamptz NOT NULL,
      version              integer NOT NULL DEFAULT 1,
      CHECK ((previous_hash IS NULL) = (previous_valid_until IS NULL)),
      CHECK ((revoked_at IS NULL) = (revoked_by IS NULL))
    );
    CREATE INDEX tokens_user ON tokens (user_id, id DESC);
    CREATE INDEX tokens_tenant ON tokens (tenant_id, id DESC);
    CREATE INDEX tokens_expiring ON tokens (expires_at) WHERE revoked_at IS NULL AND warned_at IS NULL;
    CREATE INDEX tokens_unused ON tokens ((coalesce(last_used_at, created_at)))
      WHERE revoked_at IS NULL AND disabled_at IS NULL;

    CREATE FUNCTION tokens_follow_user() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN
      UPDATE tokens SET tenant_id = NEW.tenant_id WHERE user_id = NEW.id;
      RETURN NULL;
    END $$;
    CREATE TRIGGER tokens_follow_user AFTER UPDATE OF tenant_id ON users
      FOR EACH ROW WHEN (OLD.tenant_id IS DISTINCT FROM NEW.tenant_id) EXECUTE FUNCTION tokens_follow_user();
  `);
}

export async function down(knex: Knex): Promise<void> {
  await knex.raw(`
    DROP TRIGGER tokens_follow_user ON users;
    DROP FUNCTION tokens_follow_user;
    DROP TABLE tokens;
    DELETE FROM grants WHERE user_id IN (SELECT id FROM users WHERE provider_id = 'service');
    DELETE FROM users WHERE provider_id = 'service';
    DROP INDEX users_service_name, users_service;
    ALTER TABLE users DROP COLUMN owner_id;
  `);
}
