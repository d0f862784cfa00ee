import type { Knex } from 'knex';

/**
 * A job at a device locks the site before the device, as requests do (0127) and writes of the inventory: a write of both
 * and a job that was created in between ended in a deadlock.
 */
export async function up(knex: Knex): Promise<void> {
  await knex.raw(`
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
  `);
}

/** The function of 0057. */
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
  `);
}
