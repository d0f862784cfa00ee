import type { Knex } from 'knex';

/**
 * A job or a request at a device locks the site before the device, as writes of the inventory do: a write of both and
 * a job that was created in between ended in a deadlock. The locks do not depend on the tenant: a site or
 * a device that is just moving into the tenant is waited for, and is the target's afterwards.
 */
export async function up(knex: Knex): Promise<void> {
  await knex.raw(`
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

    CREATE OR REPLACE FUNCTION set_job_scope() RETURNS trigger LANGUAGE plpgsql AS $$
    DECLARE
      is_unfinished boolean := NEW.status IN ('queued', 'running');
      device record;
    BEGIN
      IF NEW.target_device_id IS NOT NULL THEN
        SELECT l.tenant = NEW.tenant_id AS is_own, l.site INTO device FROM lock_device(NEW.target_device_id) AS l;
        NEW.device_id := CASE WHEN device.is_own THEN NEW.target_device_id END;
        IF is_unfinished THEN NEW.target_site_id := CASE WHEN device.is_own THEN device.site END; END IF;
      END IF;
      NEW.site_id := CASE WHEN lock_site(NEW.target_site_id) = NEW.tenant_id THEN NEW.target_site_id END;
      IF NEW.target_device_id IS NOT NULL AND is_unfinished THEN NEW.target_site_id := NEW.site_id; END IF;
      RETURN NEW;
    END $$;

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
  `);
}

/** The functions of 0057 and 0127. */
export async function down(knex: Knex): Promise<void> {
  await knex.raw(`
    CREATE OR REPLACE FUNCTION set_job_scope() RETURNS trigger LANGUAGE plpgsql AS $$
    DECLARE
      is_unfinished boolean := NEW.status IN ('queued', 'running');
      device_site text;
    BEGIN
      IF NEW.target_device_id IS NOT NULL THEN
        SELECT id, site_id INTO NEW.device_id, device_site FROM devices
          WHERE id = NEW.target_device_id AND tenant_id = NEW.tenant_id FOR SHARE;
        IF is_unfinished THEN NEW.target_site_id := device_site; END IF;
      END IF;
      SELECT id INTO NEW.site_id FROM sites WHERE id = NEW.target_site_id AND tenant_id = NEW.tenant_id FOR SHARE;
      IF NEW.target_device_id IS NOT NULL AND is_unfinished THEN NEW.target_site_id := NEW.site_id; END IF;
      RETURN NEW;
    END $$;

    CREATE OR REPLACE FUNCTION set_approval_scope() RETURNS trigger LANGUAGE plpgsql AS $$
    DECLARE
      device_site text;
      is_following boolean;
    BEGIN
      SELECT id, site_id INTO NEW.scope_device_id, device_site FROM devices
        WHERE id = NEW.device_id AND tenant_id = NEW.tenant_id FOR SHARE;
      is_following := NEW.scope_device_id IS NOT NULL
        AND (NEW.status = 'pending' OR NEW.execution IN ('queued', 'running'));
      SELECT id INTO NEW.scope_site_id FROM sites
        WHERE id = CASE WHEN is_following THEN device_site ELSE coalesce(NEW.followed_site_id, NEW.site_id) END
          AND tenant_id = NEW.tenant_id FOR SHARE;
      IF is_following AND coalesce(NEW.followed_site_id, NEW.site_id, '') <> coalesce(NEW.scope_site_id, '') THEN
        NEW.followed_site_id := coalesce(NEW.scope_site_id, '');
      END IF;
      RETURN NEW;
    END $$;

    DROP FUNCTION lock_device, lock_site;
  `);
}
