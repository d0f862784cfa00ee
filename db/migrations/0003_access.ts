import type { Knex } from 'knex';

/**
 * Access control: users, sessions, identity providers, roles and grants; triggers that protect the
 * heads of the audit chains.
 *
 * `grants` holds role assignments (of a user) and provider mappings (of a group at a provider).
 * `principal` and `target_id` are generated, so that one index finds a grant by holder and target.
 * `tenant_id`, `site_id` and `device_id` are the resource scope of the grant; triggers update them
 * when a site or device moves to another tenant.
 *
 * `access_state.version` counts the changes of grants and roles. Processes cache rights by version.
 */
export async function up(knex: Knex): Promise<void> {
  await knex.raw(TENANTS_SITES_DEVICES);
  await knex.raw(USERS_AND_PROVIDERS);
  await knex.raw(GRANTS);
  await knex.raw(SESSIONS);
  await knex.raw(AUDIT);
}

const TENANTS_SITES_DEVICES = `
  CREATE TABLE tenants (
    id         text COLLATE "C" PRIMARY KEY,
    name       text NOT NULL,
    created_at timestamptz NOT NULL DEFAULT now(),
    updated_at timestamptz NOT NULL DEFAULT now(),
    version    integer NOT NULL DEFAULT 1
  );
  INSERT INTO tenants (id, name) VALUES ('platform', 'Platform');

  CREATE TABLE sites (
    id         text COLLATE "C" PRIMARY KEY,
    tenant_id  text COLLATE "C" NOT NULL,
    name       text NOT NULL,
    created_at timestamptz NOT NULL DEFAULT now(),
    updated_at timestamptz NOT NULL DEFAULT now(),
    version    integer NOT NULL DEFAULT 1
  );
  CREATE INDEX sites_tenant ON sites (tenant_id, id DESC);

  CREATE TABLE devices (
    id         text COLLATE "C" PRIMARY KEY,
    tenant_id  text COLLATE "C" NOT NULL,
    site_id    text COLLATE "C" REFERENCES sites (id),
    name       text NOT NULL,
    created_at timestamptz NOT NULL DEFAULT now(),
    updated_at timestamptz NOT NULL DEFAULT now(),
    version    integer NOT NULL DEFAULT 1
  );
  CREATE INDEX devices_tenant ON devices (tenant_id, id DESC);
  CREATE INDEX devices_site ON devices (site_id, id DESC);
`;

const USERS_AND_PROVIDERS = `
  CREATE TABLE providers (
    id         text COLLATE "C" PRIMARY KEY,
    kind       text COLLATE "C" NOT NULL CHECK (kind IN ('local', 'ldap', 'oidc', 'saml')),
    name       text NOT NULL,
    enabled    boolean NOT NULL,
    config     json NOT NULL,
    secrets    json NOT NULL,
    created_at timestamptz NOT NULL,
    updated_at timestamptz NOT NULL,
    version    integer NOT NULL DEFAULT 1
  );
  CREATE UNIQUE INDEX providers_name ON providers (lower(name));
  INSERT INTO providers (id, kind, name, enabled, config, secrets, created_at, updated_at)
    VALUES ('local', 'local', 'Local accounts', true, '{}', '{}', now(), now());

  CREATE TABLE roles (
    id          text COLLATE "C" PRIMARY KEY,
    name        text NOT NULL,
    permissions text[] NOT NULL,
    created_at  timestamptz NOT NULL,
    updated_at  timestamptz NOT NULL,
    version     integer NOT NULL DEFAULT 1
  );

  CREATE TABLE users (
    id                   text COLLATE "C" PRIMARY KEY,
    provider_id          text COLLATE "C" NOT NULL,
    external_id          text COLLATE "C",
    external_groups      text[] NOT NULL DEFAULT '{}',
    username             text NOT NULL,
    display_name         text NOT NULL,
    email                text,
    tenant_id            text COLLATE "C" NOT NULL,
    enabled              boolean NOT NULL,
    password_hash        text,
    must_change_password boolean NOT NULL DEFAULT false,
    last_login_at        timestamptz,
    created_at           timestamptz NOT NULL,
    updated_at           timestamptz NOT NULL,
    version              integer NOT NULL DEFAULT 1,
    CHECK ((provider_id = 'local') = (external_id IS NULL)),
    CHECK (password_hash IS NULL OR provider_id = 'local'),
    UNIQUE (provider_id, external_id)
  );
  CREATE UNIQUE INDEX users_local_username ON users (lower(username)) WHERE provider_id = 'local';
  CREATE INDEX users_tenant ON users (tenant_id, id DESC);
  CREATE INDEX users_disabled ON users (id DESC) WHERE NOT enabled;
  CREATE INDEX users_provider ON users (provider_id, id DESC);
  CREATE INDEX users_username ON users (lower(username), id DESC);
`;

const GRANTS = `
  CREATE TABLE grants (
    id             text COLLATE "C" PRIMARY KEY,
    kind           text COLLATE "C" NOT NULL CHECK (kind IN ('assignment', 'mapping')),
    user_id        text COLLATE "C" REFERENCES users (id),
    provider_id    text COLLATE "C" REFERENCES providers (id),
    external_group text COLLATE "C",
    role_id        text COLLATE "C" NOT NULL,
    level          text COLLATE "C" NOT NULL CHECK (level IN ('platform', 'tenant', 'site', 'device')),
    tenant_id      text COLLATE "C" NOT NULL,
    site_id        text COLLATE "C" REFERENCES sites (id),
    device_id      text COLLATE "C" REFERENCES devices (id),
    principal      text COLLATE "C" NOT NULL GENERATED ALWAYS AS (
      CASE kind WHEN 'assignment' THEN 'user:' || user_id ELSE 'group:' || provider_id || ':' || external_group END
    ) STORED,
    target_id      text COLLATE "C" NOT NULL GENERATED ALWAYS AS (
      CASE level WHEN 'device' THEN device_id WHEN 'site' THEN site_id ELSE tenant_id END
    ) STORED,
    created_by     text NOT NULL,
    created_at     timestamptz NOT NULL,
    CHECK ((kind = 'assignment') = (user_id IS NOT NULL)),
    CHECK ((kind = 'mapping') = (provider_id IS NOT NULL AND external_group IS NOT NULL)),
    CHECK ((level = 'platform') = (tenant_id = 'platform' AND site_id IS NULL AND device_id IS NULL)),
    CHECK (level <> 'tenant' OR (site_id IS NULL AND device_id IS NULL)),
    CHECK (level <> 'site' OR (site_id IS NOT NULL AND device_id IS NULL)),
    CHECK (level <> 'device' OR device_id IS NOT NULL)
  );
  CREATE UNIQUE INDEX grants_right ON grants (principal, level, target_id, role_id);
  CREATE INDEX grants_kind ON grants (kind, id DESC);
  CREATE INDEX grants_tenant ON grants (tenant_id, id DESC);
  CREATE INDEX grants_user ON grants (user_id, id DESC);
  CREATE INDEX grants_provider ON grants (provider_id, id DESC);
  CREATE INDEX grants_external_group ON grants (external_group, id DESC);
  CREATE INDEX grants_role ON grants (role_id, id DESC);
  CREATE INDEX grants_site ON grants (site_id, id DESC);
  CREATE INDEX grants_device ON grants (device_id, id DESC);

  CREATE FUNCTION grants_follow_site() RETURNS trigger LANGUAGE plpgsql AS $$
  BEGIN
    UPDATE grants SET tenant_id = NEW.tenant_id WHERE level = 'site' AND site_id = NEW.id;
    RETURN NULL;
  END $$;
  CREATE TRIGGER grants_follow_site AFTER UPDATE OF tenant_id ON sites
    FOR EACH ROW WHEN (OLD.tenant_id IS DISTINCT FROM NEW.tenant_id) EXECUTE FUNCTION grants_follow_site();
  CREATE FUNCTION grants_follow_device() RETURNS trigger LANGUAGE plpgsql AS $$
  BEGIN
    UPDATE grants SET tenant_id = NEW.tenant_id, site_id = NEW.site_id WHERE level = 'device' AND device_id = NEW.id;
    RETURN NULL;
  END $$;
  CREATE TRIGGER grants_follow_device AFTER UPDATE OF tenant_id, site_id ON devices
    FOR EACH ROW WHEN (OLD.tenant_id IS DISTINCT FROM NEW.tenant_id OR OLD.site_id IS DISTINCT FROM NEW.site_id)
    EXECUTE FUNCTION grants_follow_device();

  CREATE TABLE access_state (
    only_row boolean PRIMARY KEY DEFAULT true CHECK (only_row),
    version  bigint NOT NULL
  );
  INSERT INTO access_state (version) VALUES (1);
  CREATE FUNCTION access_changed() RETURNS trigger LANGUAGE plpgsql AS $$
  BEGIN
    UPDATE access_state SET version = version + 1;
    RETURN NULL;
  END $$;
  CREATE TRIGGER grants_changed AFTER INSERT OR UPDATE OR DELETE ON grants
    FOR EACH STATEMENT EXECUTE FUNCTION access_changed();
  CREATE TRIGGER roles_changed AFTER INSERT OR UPDATE OR DELETE ON roles
    FOR EACH STATEMENT EXECUTE FUNCTION access_changed();
`;

const SESSIONS = `
  CREATE TABLE sessions (
    id                  text COLLATE "C" PRIMARY KEY,
    user_id             text COLLATE "C" NOT NULL REFERENCES users (id),
    tenant_id           text COLLATE "C" NOT NULL,
    address             text,
    user_agent          text,
    created_at          timestamptz NOT NULL,
    refreshed_at        timestamptz NOT NULL,
    idle_expires_at     timestamptz NOT NULL,
    absolute_expires_at timestamptz NOT NULL,
    ended_at            timestamptz,
    end_reason          text COLLATE "C"
                        CHECK (end_reason IN ('logout', 'token_reuse', 'password_change',
                                              'disabled', 'revoked', 'provider_disabled')),
    CHECK ((ended_at IS NULL) = (end_reason IS NULL))
  );
  CREATE INDEX sessions_user ON sessions (user_id, id DESC);
  CREATE INDEX sessions_absolute ON sessions (absolute_expires_at);
  CREATE INDEX sessions_ended ON sessions (ended_at) WHERE ended_at IS NOT NULL;

  CREATE TABLE session_tokens (
    hash       bytea PRIMARY KEY,
    session_id text COLLATE "C" NOT NULL REFERENCES sessions (id) ON DELETE CASCADE,
    kind       text COLLATE "C" NOT NULL CHECK (kind IN ('access', 'refresh')),
    expires_at timestamptz NOT NULL,
    spent_at   timestamptz
  );
  CREATE INDEX session_tokens_session ON session_tokens (session_id);

  CREATE TABLE logins (
    id             text COLLATE "C" PRIMARY KEY,
    provider_id    text COLLATE "C" NOT NULL REFERENCES providers (id) ON DELETE CASCADE,
    state_hash     bytea NOT NULL UNIQUE,
    browser_hash   bytea NOT NULL,
    sealed_request text NOT NULL,
    return_to      text NOT NULL,
    sealed_profile text,
    attempts       integer NOT NULL DEFAULT 0,
    expires_at     timestamptz NOT NULL,
    used_at        timestamptz
  );
  CREATE INDEX logins_expires_at ON logins (expires_at);

  CREATE TABLE rate_limits (
    key    varchar(255) COLLATE "C" PRIMARY KEY,
    points integer NOT NULL DEFAULT 0,
    expire bigint
  );
  CREATE INDEX rate_limits_expire ON rate_limits (expire);
`;

const AUDIT = `
  CREATE FUNCTION audit_heads_only_grow() RETURNS trigger LANGUAGE plpgsql AS $$
  BEGIN
    RAISE EXCEPTION 'audit_heads only grow' USING ERRCODE = 'insufficient_privilege';
  END $$;
  CREATE TRIGGER audit_heads_no_delete BEFORE DELETE ON audit_heads
    FOR EACH ROW EXECUTE FUNCTION audit_heads_only_grow();
  CREATE TRIGGER audit_heads_no_truncate BEFORE TRUNCATE ON audit_heads
    FOR EACH STATEMENT EXECUTE FUNCTION audit_heads_only_grow();
  CREATE TRIGGER audit_heads_grow BEFORE UPDATE ON audit_heads
    FOR EACH ROW WHEN (NEW.position <= OLD.position OR NEW.tenant_id IS DISTINCT FROM OLD.tenant_id)
    EXECUTE FUNCTION audit_heads_only_grow();
  CREATE INDEX audit_entries_actor ON audit_entries (actor_id, id DESC);
  CREATE INDEX audit_entries_action ON audit_entries (action, id DESC);
  CREATE INDEX audit_entries_request ON audit_entries (request_id, id DESC);
  CREATE INDEX audit_entries_refused ON audit_entries (outcome, id DESC) WHERE outcome <> 'done';
`;

export async function down(knex: Knex): Promise<void> {
  await knex.raw(`
    DROP INDEX audit_entries_actor, audit_entries_action, audit_entries_request, audit_entries_refused;
    DROP TRIGGER audit_heads_no_delete ON audit_heads;
    DROP TRIGGER audit_heads_no_truncate ON audit_heads;
    DROP TRIGGER audit_heads_grow ON audit_heads;
    DROP FUNCTION audit_heads_only_grow;
    DROP TABLE rate_limits, logins, session_tokens, sessions, access_state, grants, users, roles, providers,
      devices, sites, tenants;
    DROP FUNCTION grants_follow_site, grants_follow_device, access_changed;
  `);
}
