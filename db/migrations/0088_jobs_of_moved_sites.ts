import type { Knex } from 'knex';

/**
 * A site that moves to the tenant of devices at it takes their unfinished jobs along, as a device does that moves to a
 * site: they belonged to no site, until a restore computed that again.
 */
export async function up(knex: Knex): Promise<void> {
  await knex.raw(`
    CREATE OR REPLACE FUNCTION jobs_follow_site() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN
      UPDATE jobs SET site_id = CASE WHEN tenant_id = NEW.tenant_id THEN NEW.id END, version = version + 1
        WHERE target_site_id = NEW.id;
      UPDATE jobs AS j SET target_site_id = NEW.id, site_id = NEW.id, version = j.version + 1
        FROM devices AS d
        WHERE d.site_id = NEW.id AND d.tenant_id = NEW.tenant_id AND j.target_device_id = d.id
          AND j.tenant_id = NEW.tenant_id AND j.status IN ('queued', 'running')
          AND j.target_site_id IS DISTINCT FROM NEW.id;
      RETURN NULL;
    END $$`);
}

export async function down(knex: Knex): Promise<void> {
  await knex.raw(`
    CREATE OR REPLACE FUNCTION jobs_follow_site() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN
      UPDATE jobs SET site_id = CASE WHEN tenant_id = NEW.tenant_id THEN NEW.id END, version = version + 1
        WHERE target_site_id = NEW.id;
      RETURN NULL;
    END $$`);
}
