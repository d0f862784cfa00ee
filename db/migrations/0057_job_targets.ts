import type { Knex } from 'knex';

/**
 * Jobs about a site or a device. `target_site_id` and `target_device_id` are what a job is about; a job
 * about a device has the site of the device, too, which follows the device until the job has ended.
 * `site_id` and `device_id` are what the job belongs to: these, as long as they are of its tenant.
 */
export async function up(knex: Knex): Promise<void> {
  await knex.raw(COLUMNS);
  await knex.raw(FUNCTIONS);
  await knex.raw(TRIGGERS);
}

const COLUMNS = `
  ALTER TABLE jobs
    ADD target_site_id text COLLATE "C", ADD target_device_id text COLLATE "C",
    ADD site_id text COLLATE "C", ADD device_id text COLLATE "C";
  CREATE INDEX jobs_site ON jobs (site_id, id DESC) WHERE site_id IS NOT NULL;
  CREATE INDEX jobs_device ON jobs (device_id, id DESC) WHERE device_id IS NOT NULL;
  CREATE INDEX jobs_target_site ON jobs (target_site_id) WHERE target_site_id IS NOT NULL;
  CREATE INDEX jobs_target_device ON jobs (target_device_id) WHERE target_device_id IS NOT NULL;
  CREATE INDEX jobs_target_unfinished ON jobs (target_device_id)
    WHERE target_device_id IS NOT NULL AND status IN ('queued', 'running');
`;

const FUNCTIONS = `
  CREATE FUNCTION set_job_scope() RETURNS trigger LANGUAGE plpgsql AS $$
  DECLARE
    is_unfinished boolean := NEW.status IN ('queued', 'running');
    device_site text;
  BEGIN
    -- FOR SHARE waits for a move of the device or the site: its trigger does not see this row yet.
    IF NEW.target_device_id IS NOT NULL THEN
      SELECT id, site_id INTO NEW.device_id, device_site FROM devices
        WHERE id = NEW.target_device_id AND tenant_id = NEW.tenant_id FOR SHARE;
      IF is_unfinished THEN NEW.target_site_id := device_site; END IF;
    END IF;
    SELECT id INTO NEW.site_id FROM sites WHERE id = NEW.target_site_id AND tenant_id = NEW.tenant_id FOR SHARE;
    IF NEW.target_device_id IS NOT NULL AND is_unfinished THEN NEW.target_site_id := NEW.site_id; END IF;
    RETURN NEW;
  END $$;

  CREATE FUNCTION jobs_follow_device() RETURNS trigger LANGUAGE plpgsql AS $$
  DECLARE
    own_site text := own_site_of_device(NEW.id);
  BEGIN
    IF OLD.tenant_id IS DISTINCT FROM NEW.tenant_id THEN
      UPDATE jobs SET device_id = CASE WHEN tenant_id = NEW.tenant_id THEN NEW.id END, version = version + 1
        WHERE target_device_id = NEW.id;
    END IF;
    UPDATE jobs SET target_site_id = own_site, site_id = own_site, version = version + 1
      WHERE target_device_id = NEW.id AND status IN ('queued', 'running') AND tenant_id = NEW.tenant_id
        AND target_site_id IS DISTINCT FROM own_site;
    RETURN NULL;
  END $$;

  CREATE FUNCTION jobs_follow_site() RETURNS trigger LANGUAGE plpgsql AS $$
  BEGIN
    UPDATE jobs SET site_id = CASE WHEN tenant_id = NEW.tenant_id THEN NEW.id END, version = version + 1
      WHERE target_site_id = NEW.id;
    RETURN NULL;
  END $$;

  -- After a restore. A record that does not exist any more belongs to no other tenant.
  CREATE FUNCTION recalculate_job_scopes() RETURNS void LANGUAGE sql AS $$
    UPDATE jobs AS j SET target_site_id = own_site_of_device(d.id)
      FROM devices AS d
      WHERE d.id = j.target_device_id AND d.tenant_id = j.tenant_id AND j.status IN ('queued', 'running')
        AND j.target_site_id IS DISTINCT FROM own_site_of_device(d.id);
    UPDATE jobs AS j SET site_id = n.site, device_id = n.device
      FROM (SELECT r.id, CASE WHEN s.id IS NULL THEN r.target_site_id END AS site,
                   CASE WHEN d.id IS NULL THEN r.target_device_id END AS device
        FROM jobs AS r
        LEFT JOIN sites AS s ON s.id = r.target_site_id AND s.tenant_id <> r.tenant_id
        LEFT JOIN devices AS d ON d.id = r.target_device_id AND d.tenant_id <> r.tenant_id
        WHERE r.target_site_id IS NOT NULL OR r.target_device_id IS NOT NULL) AS n
      WHERE j.id = n.id AND (j.site_id, j.device_id) IS DISTINCT FROM (n.site, n.device);
  $$;
`;

const TRIGGERS = `
  CREATE TRIGGER jobs_scope BEFORE INSERT ON jobs FOR EACH ROW
    WHEN (NEW.target_site_id IS NOT NULL OR NEW.target_device_id IS NOT NULL) EXECUTE FUNCTION set_job_scope();
  CREATE TRIGGER devices_job_scope AFTER UPDATE OF tenant_id, site_id ON devices FOR EACH ROW
    WHEN (OLD.tenant_id IS DISTINCT FROM NEW.tenant_id OR OLD.site_id IS DISTINCT FROM NEW.site_id)
    EXECUTE FUNCTION jobs_follow_device();
  CREATE TRIGGER sites_job_scope AFTER UPDATE OF tenant_id ON sites FOR EACH ROW
    WHEN (OLD.tenant_id IS DISTINCT FROM NEW.tenant_id) EXECUTE FUNCTION jobs_follow_site();
`;

export async function down(knex: Knex): Promise<void> {
  await knex.raw(`
    DROP FUNCTION set_job_scope, jobs_follow_device, jobs_follow_site CASCADE;
    DROP FUNCTION recalculate_job_scopes;
    ALTER TABLE jobs DROP target_site_id, DROP target_device_id, DROP site_id, DROP device_id;
  `);
}
