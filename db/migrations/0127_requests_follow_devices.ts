import type { Knex } from 'knex';

/**
 * A request at a device follows it to another site until the request is closed and its job has ended, as jobs do
 * (0057, 0088). A closed request stays at the site where it was decided.
 *
 * `site_id` is part of the content, which never changes. `followed_site_id` is the site of the device if
 * that is another one by now, and '' if the device has none of its tenant; null if the device has not moved. So
 * rows of earlier versions are right as they are.
 *
 * The site is locked before the device, as writes of the inventory do. The locks do not depend on the tenant: a site or a
 * device that is just moving into the tenant is waited for, and is where the request belongs afterwards.
 */
export async function up(knex: Knex): Promise<void> {
  await knex.raw('ALTER TABLE approvals ADD followed_site_id text COLLATE "C"');
  await knex.raw(FUNCTIONS);
  await knex.raw(`
    CREATE FUNCTION approvals_follow_device() RETURNS trigger LANGUAGE plpgsql AS $$
    DECLARE
      own_site text := own_site_of_device(NEW.id);
    BEGIN
      UPDATE approvals SET followed_site_id = coalesce(own_site, ''), scope_site_id = own_site, version = version + 1
        WHERE device_id = NEW.id AND tenant_id = NEW.tenant_id
          AND (status = 'pending' OR execution IN ('queued', 'running'))
          AND coalesce(followed_site_id, site_id, '') <> coalesce(own_site, '');
      RETURN NULL;
    END $$;
    CREATE TRIGGER devices_approval_site AFTER UPDATE OF tenant_id, site_id ON devices FOR EACH ROW
      WHEN (OLD.tenant_id IS DISTINCT FROM NEW.tenant_id OR OLD.site_id IS DISTINCT FROM NEW.site_id)
      EXECUTE FUNCTION approvals_follow_device();
    SELECT move_open_approvals()`);
}

const FUNCTIONS = `
  -- Where a device belongs, with both locked. Its site is read before the locks, and again after them.
  CREATE FUNCTION lock_device(device text, OUT tenant text, OUT site text) LANGUAGE plpgsql AS $$
  DECLARE
    seen text;
  BEGIN
    FOR attempt IN 1..5 LOOP
      SELECT d.site_id INTO seen FROM devices AS d WHERE d.id = device;
      PERFORM FROM sites AS s WHERE s.id = seen FOR SHARE;
      SELECT d.tenant_id, d.site_id INTO tenant, site FROM devices AS d WHERE d.id = device FOR SHARE;
      EXIT WHEN site IS NOT DISTINCT FROM seen;
    END LOOP;
  END $$;

  CREATE FUNCTION lock_site(site text, OUT tenant text) LANGUAGE sql AS $$
    SELECT s.tenant_id FROM sites AS s WHERE s.id = site FOR SHARE
  $$;

  CREATE OR REPLACE FUNCTION set_approval_scope() RETURNS trigger LANGUAGE plpgsql AS $$
  DECLARE
    device record;
    is_following boolean;
    own_site text;
  BEGIN
    SELECT l.tenant = NEW.tenant_id AS is_own, l.site INTO device FROM lock_device(NEW.device_id) AS l;
    NEW.scope_device_id := CASE WHEN device.is_own THEN NEW.device_id END;
    is_following := NEW.scope_device_id IS NOT NULL
      AND (NEW.status = 'pending' OR NEW.execution IN ('queued', 'running'));
    own_site := CASE WHEN is_following THEN device.site ELSE coalesce(NEW.followed_site_id, NEW.site_id) END;
    NEW.scope_site_id := CASE WHEN lock_site(own_site) = NEW.tenant_id THEN own_site END;
    IF is_following AND coalesce(NEW.followed_site_id, NEW.site_id, '') <> coalesce(NEW.scope_site_id, '') THEN
      NEW.followed_site_id := coalesce(NEW.scope_site_id, '');
    END IF;
    RETURN NEW;
  END $$;

  CREATE OR REPLACE FUNCTION update_approval_scopes() RETURNS trigger LANGUAGE plpgsql AS $$
  BEGIN
    IF TG_TABLE_NAME = 'sites' THEN
      -- If the site has moved to another tenant, an open request at a device there has no site. It keeps that when it
      -- is closed before the site returns.
      UPDATE approvals SET scope_site_id = CASE WHEN tenant_id = NEW.tenant_id THEN NEW.id END, version = version + 1,
          followed_site_id = CASE WHEN tenant_id <> NEW.tenant_id AND scope_device_id IS NOT NULL
            AND (status = 'pending' OR execution IN ('queued', 'running')) THEN '' ELSE followed_site_id END
        WHERE followed_site_id = NEW.id OR followed_site_id IS NULL AND site_id = NEW.id;
      UPDATE approvals AS a SET followed_site_id = NEW.id, scope_site_id = NEW.id, version = a.version + 1
        FROM devices AS d
        WHERE d.site_id = NEW.id AND d.tenant_id = NEW.tenant_id AND a.device_id = d.id
          AND a.tenant_id = NEW.tenant_id AND (a.status = 'pending' OR a.execution IN ('queued', 'running'))
          AND coalesce(a.followed_site_id, a.site_id, '') <> NEW.id;
    ELSE
      UPDATE approvals SET scope_device_id = CASE WHEN tenant_id = NEW.tenant_id THEN NEW.id END,
          version = version + 1
        WHERE device_id = NEW.id;
    END IF;
    RETURN NULL;
  END $$;

  CREATE FUNCTION move_open_approvals() RETURNS void LANGUAGE sql AS $$
    UPDATE approvals AS a
      SET followed_site_id = coalesce(own_site_of_device(d.id), ''), scope_site_id = own_site_of_device(d.id)
      FROM devices AS d
      WHERE d.id = a.device_id AND d.tenant_id = a.tenant_id
        AND (a.status = 'pending' OR a.execution IN ('queued', 'running'))
        AND coalesce(a.followed_site_id, a.site_id, '') <> coalesce(own_site_of_device(d.id), '');
  $$;

  -- After a restore. A record that does not exist any more belongs to no other tenant.
  CREATE OR REPLACE FUNCTION recalculate_approval_scopes() RETURNS void LANGUAGE sql AS $$
    SELECT move_open_approvals();
    UPDATE approvals AS a SET scope_site_id = n.site, scope_device_id = n.device
      FROM (SELECT r.id,
                   CASE WHEN s.id IS NULL THEN nullif(coalesce(r.followed_site_id, r.site_id), '') END AS site,
                   CASE WHEN d.id IS NULL THEN r.device_id END AS device
        FROM approvals AS r
        LEFT JOIN sites AS s ON s.id = coalesce(r.followed_site_id, r.site_id) AND s.tenant_id <> r.tenant_id
        LEFT JOIN devices AS d ON d.id = r.device_id AND d.tenant_id <> r.tenant_id
        WHERE r.site_id IS NOT NULL OR r.device_id IS NOT NULL) AS n
      WHERE a.id = n.id AND (a.scope_site_id, a.scope_device_id) IS DISTINCT FROM (n.site, n.device);
  $$;
`;

/** The functions of 0018. */
const FUNCTIONS_BEFORE = `
  CREATE OR REPLACE FUNCTION set_approval_scope() RETURNS trigger LANGUAGE plpgsql AS $$
  BEGIN
    -- FOR SHARE waits for a move of the site or the device: its trigger does not see this row yet.
    SELECT id INTO NEW.scope_site_id FROM sites WHERE id = NEW.site_id AND tenant_id = NEW.tenant_id FOR SHARE;
    SELECT id INTO NEW.scope_device_id FROM devices WHERE id = NEW.device_id AND tenant_id = NEW.tenant_id FOR SHARE;
    RETURN NEW;
  END $$;
  CREATE OR REPLACE FUNCTION update_approval_scopes() RETURNS trigger LANGUAGE plpgsql AS $$
  BEGIN
    IF TG_TABLE_NAME = 'sites' THEN
      UPDATE approvals SET scope_site_id = CASE WHEN tenant_id = NEW.tenant_id THEN NEW.id END WHERE site_id = NEW.id;
    ELSE
      UPDATE approvals SET scope_device_id = CASE WHEN tenant_id = NEW.tenant_id THEN NEW.id END WHERE device_id = NEW.id;
    END IF;
    RETURN NULL;
  END $$;
  CREATE OR REPLACE FUNCTION recalculate_approval_scopes() RETURNS void LANGUAGE sql AS $$
    UPDATE approvals AS a SET scope_site_id = n.site, scope_device_id = n.device
      FROM (SELECT r.id, s.id AS site, d.id AS device FROM approvals AS r
        LEFT JOIN sites AS s ON s.id = r.site_id AND s.tenant_id = r.tenant_id
        LEFT JOIN devices AS d ON d.id = r.device_id AND d.tenant_id = r.tenant_id
        WHERE coalesce(r.site_id, r.device_id) IS NOT NULL) AS n
      WHERE a.id = n.id AND (a.scope_site_id, a.scope_device_id) IS DISTINCT FROM (n.site, n.device);
  $$;
`;

export async function down(knex: Knex): Promise<void> {
  await knex.raw(FUNCTIONS_BEFORE);
  await knex.raw('DROP FUNCTION lock_device, lock_site');
  await knex.raw('DROP FUNCTION approvals_follow_device, move_open_approvals CASCADE');
  await knex.raw('ALTER TABLE approvals DROP followed_site_id');
  await knex.raw('SELECT recalculate_approval_scopes()');
}
