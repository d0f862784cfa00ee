import type { Knex } from 'knex';

/**
 * Tenants share the slots of jobs and of deliveries. `jobs.slot` is null for jobs that
 * need none. `workers` has what each running worker offers; a row that is old does not count.
 */
export async function up(knex: Knex): Promise<void> {
  await knex.raw(`
    ALTER TABLE jobs ADD slot text COLLATE "C" CHECK (slot IN ('waiting', 'held'));
    CREATE INDEX jobs_slots ON jobs (slot, tenant_id, id)
      WHERE slot IS NOT NULL AND status IN ('queued', 'running');
    CREATE INDEX deliveries_tenant_in_flight ON deliveries (tenant_id)
      WHERE status = 'pending' AND in_flight;
    CREATE TABLE workers (
      id              text COLLATE "C" PRIMARY KEY,
      activity_slots integer NOT NULL,
      delivery_slots integer NOT NULL,
      seen_at         timestamptz NOT NULL
    );
  `);
}

export async function down(knex: Knex): Promise<void> {
  await knex.raw(`
    DROP TABLE workers;
    DROP INDEX deliveries_tenant_in_flight;
    ALTER TABLE jobs DROP slot;
  `);
}
