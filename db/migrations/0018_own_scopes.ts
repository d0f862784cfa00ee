import type { Knex } from 'knex';

/**
 * A site counts only for records of its own tenant. A grant at a device names the site of the device
 * only if both belong to one tenant; it is set and cleared when the device or the site moves.
 *
 * `approvals.scope_site_id` and `scope_device_id` are what a request belongs to: its site and its
 * device as long as they belong to its tenant. `site_id` and `device_id` are part of its content,
 * which is hashed, and never change.
 */
export async function up(knex: Knex): Promise<void> {
  await knex.raw(GRANTS);
  await knex.raw(APPROVALS);
}

const GRANTS = `
  CREATE FUNCTION own_site_of_device(device text) RETURNS text LANGUAGE sql STABLE AS $$
    SELECT s.id FROM devices AS d JOIN sites AS s ON s.id = d.site_id AND s.tenant_id = d.tenant_id WHERE d.id = device
  $$;
  UPDATE grants SET site_id = own_site_of_device(device_id)
    WHERE level = 'device' AND site_id IS DISTINCT FROM own_site_of_device(device_id);

  -- Statements are skipped when there is nothing to change: each of them locks access_state.
  CREATE OR REPLACE FUNCTION grants_follow_site() RETURNS trigger LANGUAGE plpgsql AS $$
  BEGIN
    IF EXISTS (SELECT FROM grants WHERE site_id = NEW.id AND level = 'site') THEN
      DELETE FROM grants WHERE level = 'site' AND site_id = NEW.id;
    END IF;
    IF EXISTS (SELECT FROM devices AS d JOIN grants AS g ON g.device_id = d.id WHERE d.site_id = NEW.id) THEN
      UPDATE grants AS g SET site_id = CASE WHEN d.tenant_id = NEW.tenant_id THEN NEW.id END
        FROM devices AS d
        WHERE d.site_id = NEW.id AND g.device_id = d.id AND g.level = 'device';
    END IF;
    RETURN NULL;
  END $$;
  CREATE OR REPLACE FUNCTION grants_follow_device() RETURNS trigger LANGUAGE plpgsql AS $$
  BEGIN
    IF NOT EXISTS (SELECT FROM grants WHERE device_id = NEW.id) THEN
      RETURN NULL;
    ELSIF OLD.tenant_id IS DISTINCT FROM NEW.tenant_id THEN
      DELETE FROM grants WHERE level = 'device' AND device_id = NEW.id;
    ELSE
      UPDATE grants SET site_id = own_site_of_device(NEW.id) WHERE level = 'device' AND device_id = NEW.id;
    END IF;
    RETURN NULL;
  END $$;
`;

const APPROVALS = `
  ALTER TABLE approvals ADD scope_site_id text COLLATE "C", ADD scope_device_id text COLLATE "C";
  CREATE INDEX approvals_scope_site ON approvals (scope_site_id, id DESC) WHERE scope_site_id IS NOT NULL;
  CREATE INDEX approvals_scope_device ON approvals (scope_device_id, id DESC) WHERE scope_device_id IS NOT NULL;
  DROP INDEX approvals_site, approvals_device;
  CREATE INDEX approvals_site ON approvals (site_id) WHERE site_id IS NOT NULL;
  CREATE INDEX approvals_device ON approvals (device_id) WHERE device_id IS NOT NULL;

  CREATE FUNCTION recalculate_approval_scopes() RETURNS void LANGUAGE sql AS $$
    UPDATE approvals AS a SET scope_site_id = n.site, scope_device_id = n.device
      FROM (SELECT r.id, s.id AS site, d.id AS device FROM approvals AS r
        LEFT JOIN sites AS s ON s.id = r.site_id AND s.tenant_id = r.tenant_id
        LEFT JOIN devices AS d ON d.id = r.device_id AND d.tenant_id = r.tenant_id
        WHERE coalesce(r.site_id, r.device_id) IS NOT NULL) AS n
      WHERE a.id = n.id AND (a.scope_site_id, a.scope_device_id) IS DISTINCT FROM (n.site, n.device);
  $$;
  SELECT recalculate_approval_scopes();

  CREATE FUNCTION set_approval_scope() RETURNS trigger LANGUAGE plpgsql AS $$
  BEGIN
    -- FOR SHARE waits for a move of the site or the device: its trigger does not see this row yet.
    SELECT id INTO NEW.scope_site_id FROM sites WHERE id = NEW.site_id AND tenant_id = NEW.tenant_id FOR SHARE;
    SELECT id INTO NEW.scope_device_id FROM devices WHERE id = NEW.device_id AND tenant_id = NEW.tenant_id FOR SHARE;
    RETURN NEW;
  END $$;
  CREATE TRIGGER approvals_scope BEFORE INSERT ON approvals FOR EACH ROW EXECUTE FUNCTION set_approval_scope();

  CREATE FUNCTION update_approval_scopes() RETURNS trigger LANGUAGE plpgsql AS $$
  BEGIN
    IF TG_TABLE_NAME = 'sites' THEN
      UPDATE approvals SET scope_site_id = CASE WHEN tenant_id = NEW.tenant_id THEN NEW.id END WHERE site_id = NEW.id;
    ELSE
      UPDATE approvals SET scope_device_id = CASE WHEN tenant_id = NEW.tenant_id THEN NEW.id END WHERE device_id = NEW.id;
    END IF;
    RETURN NULL;
  END $$;
  CREATE TRIGGER sites_approval_scope AFTER UPDATE OF tenant_id ON sites
    FOR EACH ROW WHEN (OLD.tenant_id IS DISTINCT FROM NEW.tenant_id) EXECUTE FUNCTION update_approval_scopes();
  CREATE TRIGGER devices_approval_scope AFTER UPDATE OF tenant_id ON devices
    FOR EACH ROW WHEN (OLD.tenant_id IS DISTINCT FROM NEW.tenant_id) EXECUTE FUNCTION update_approval_scopes();
`;

/** The functions of 0012. Grants keep the sites that they have. */
const GRANTS_BEFORE = `
  CREATE OR REPLACE FUNCTION grants_follow_site() RETURNS trigger LANGUAGE plpgsql AS $$
  BEGIN
    DELETE FROM grants WHERE level = 'site' AND site_id = NEW.id;
    RETURN NULL;
  END $$;
  CREATE OR REPLACE FUNCTION grants_follow_device() RETURNS trigger LANGUAGE plpgsql AS $$
  BEGIN
    IF OLD.tenant_id IS DISTINCT FROM NEW.tenant_id THEN
      DELETE FROM grants WHERE level = 'device' AND device_id = NEW.id;
    ELSE
      UPDATE grants SET site_id = NEW.site_id WHERE level = 'device' AND device_id = NEW.id;
    END IF;
    RETURN NULL;
  END $$;
  DROP FUNCTION own_site_of_device;
`;

export async function down(knex: Knex): Promise<void> {
  await knex.raw(`
    DROP FUNCTION set_approval_scope, update_approval_scopes CASCADE;
    DROP FUNCTION recalculate_approval_scopes;
    DROP INDEX approvals_site, approvals_device;
    ALTER TABLE approvals DROP scope_site_id, DROP scope_device_id;
    CREATE INDEX approvals_site ON approvals (site_id, id DESC) WHERE site_id IS NOT NULL;
    CREATE INDEX approvals_device ON approvals (device_id, id DESC) WHERE device_id IS NOT NULL;
  `);
  await knex.raw(GRANTS_BEFORE);
}
