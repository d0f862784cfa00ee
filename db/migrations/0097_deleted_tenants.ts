import type { Knex } from 'knex';
import { LOCK_PREFIXES } from '../core/advisoryLocks.ts';

/** Tables whose rows keep a tenant from being deleted, besides those of the inventory. */
const TABLES = [
  'users',
  'grants',
  'webhooks',
  'schedules',
  'secrets',
  'backups',
  'approvals',
  'jobs',
];

/**
 * A tenant could be deleted while something was created in it, and a later tenant with its id had that. Who
 * creates shares the lock of the tenant, and the deletion takes it alone before it reads what there is. Only
 * those who had to wait check that the tenant is still there: gateways may name tenants without a record.
 */
export async function up(knex: Knex): Promise<void> {
  await knex.raw(`
    CREATE FUNCTION share_tenant() RETURNS trigger LANGUAGE plpgsql AS $$
    DECLARE
      lock_key CONSTANT bigint := hashtextextended('${LOCK_PREFIXES.tenant}' || NEW.tenant_id, 0);
    BEGIN
      -- A restore, or its preview: there may be more tenants than a transaction can have locks.
      IF current_setting('holdfast.restoring', true) = 'on' THEN RETURN NULL; END IF;
      IF pg_try_advisory_xact_lock_shared(lock_key) THEN RETURN NULL; END IF;
      PERFORM pg_advisory_xact_lock_shared(lock_key);
      IF NOT EXISTS (SELECT FROM tenants WHERE id = NEW.tenant_id) THEN
        RAISE EXCEPTION 'the tenant was deleted' USING ERRCODE = 'HF005';
      END IF;
      RETURN NULL;
    END $$;`);
  for (const table of TABLES)
    await knex.raw(`
      CREATE TRIGGER tenant_shared AFTER INSERT ON ${table}
        FOR EACH ROW WHEN (NEW.tenant_id <> 'platform') EXECUTE FUNCTION share_tenant()`);
}

export async function down(knex: Knex): Promise<void> {
  for (const table of TABLES) await knex.raw(`DROP TRIGGER tenant_shared ON ${table}`);
  await knex.raw('DROP FUNCTION share_tenant');
}
