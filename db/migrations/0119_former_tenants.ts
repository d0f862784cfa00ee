import type { Knex } from 'knex';

/**
 * A tenant inherited the views and the retention periods of an earlier one with its id. Views are deleted with
 * their tenant. Periods are deleted when a tenant with the id is created: until then the purge of what the
 * earlier one has left uses them. Gateways may name tenants without a record, so views without one are not old:
 * those that are show in the audit log. What a present tenant has inherited stays: without it, a purge could
 * delete what is kept now.
 */
export async function up(knex: Knex): Promise<void> {
  await knex.raw(`
    CREATE FUNCTION forget_views_of_tenant() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN
      DELETE FROM view_defaults WHERE tenant_id = OLD.id;
      DELETE FROM views WHERE tenant_id = OLD.id;
      RETURN NULL;
    END $$;
    CREATE TRIGGER tenants_views AFTER DELETE ON tenants
      FOR EACH ROW EXECUTE FUNCTION forget_views_of_tenant();
    CREATE TRIGGER tenant_shared AFTER INSERT ON views
      FOR EACH ROW WHEN (NEW.tenant_id <> 'platform') EXECUTE FUNCTION share_tenant();

    CREATE FUNCTION forget_retention_of_tenant() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN
      IF current_setting('holdfast.restoring', true) = 'on' THEN RETURN NULL; END IF;
      DELETE FROM retention_settings WHERE tenant_id = NEW.id;
      RETURN NULL;
    END $$;
    CREATE TRIGGER tenants_retention AFTER INSERT ON tenants
      FOR EACH ROW EXECUTE FUNCTION forget_retention_of_tenant();

    UPDATE retention_settings SET updated_at = t.created_at
      FROM tenants AS t WHERE t.id = tenant_id AND retention_settings.updated_at < t.created_at;
    DELETE FROM views WHERE EXISTS (
      SELECT FROM audit_entries AS e
      WHERE e.action IN ('inventory.tenant.delete', 'inventory.tenant.restore') AND e.after IS NULL
        AND e.outcome = 'done' AND e.subject_id COLLATE "C" = views.tenant_id AND e.at >= views.created_at
        AND NOT EXISTS (SELECT FROM tenants AS t WHERE t.id = views.tenant_id AND t.created_at < e.at));
    DELETE FROM view_defaults WHERE NOT EXISTS (SELECT FROM views AS v WHERE v.id = view_id)`);
}

export async function down(knex: Knex): Promise<void> {
  await knex.raw(`
    DROP TRIGGER tenants_retention ON tenants;
    DROP FUNCTION forget_retention_of_tenant;
    DROP TRIGGER tenant_shared ON views;
    DROP TRIGGER tenants_views ON tenants;
    DROP FUNCTION forget_views_of_tenant`);
}
