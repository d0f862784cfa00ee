import type { Knex } from 'knex';

/**
 * `create_job_log_rest` creates a partition for the rest of a month, when too many lines of its
 * beginning are in `job_logs_other` to be moved.
 *
 * Holds of the platform do not count for the quota of the tenant that they hold.
 */
export async function up(knex: Knex): Promise<void> {
  await knex.raw(`
    CREATE FUNCTION create_job_log_rest(since timestamptz) RETURNS void LANGUAGE plpgsql AS $$
    DECLARE
      name CONSTANT text := 'job_logs_' || to_char(since AT TIME ZONE 'UTC', 'YYYY_MM');
    BEGIN
      IF to_regclass(format('%I.%I', current_schema(), name)) IS NOT NULL THEN RETURN; END IF;
      EXECUTE format('CREATE TABLE %I (LIKE job_logs INCLUDING ALL)', name);
      EXECUTE format('ALTER TABLE job_logs ATTACH PARTITION %I FOR VALUES FROM (%L) TO (%L)',
        name, first_job_id(since), first_job_id(month_after(since, 1)));
    END $$;
  `);
  await knex.raw(quotaTriggers(` AND NEW.level = 'tenant'`));
  await knex.raw(countHolds('-'));
}

/** The triggers that count holds for the quota of their tenant. A hold keeps its level. */
const quotaTriggers = (counted: string): string => `
  DROP TRIGGER quota_legalholds_insert_added ON legal_holds;
  DROP TRIGGER quota_legalholds_update_removed ON legal_holds;
  CREATE TRIGGER quota_legalholds_insert_added AFTER INSERT ON legal_holds FOR EACH ROW
    WHEN (NEW.tenant_id <> 'platform' AND NEW.released_at IS NULL${counted})
    EXECUTE FUNCTION count_quota_row('legalHolds', 'added');
  CREATE TRIGGER quota_legalholds_update_removed AFTER UPDATE ON legal_holds FOR EACH ROW
    WHEN (OLD.tenant_id <> 'platform' AND OLD.released_at IS NULL AND NEW.released_at IS NOT NULL${counted})
    EXECUTE FUNCTION count_quota_row('legalHolds', 'removed');
`;

/** Adds the holds of the platform to what tenants own, or subtracts them. */
const countHolds = (sign: '' | '-'): string => `
  INSERT INTO quota_usage (tenant_id, quota, change, written_by)
    SELECT tenant_id, 'legalHolds', ${sign}count(*), '0' FROM legal_holds
    WHERE tenant_id <> 'platform' AND released_at IS NULL AND level = 'platform' GROUP BY tenant_id`;

export async function down(knex: Knex): Promise<void> {
  await knex.raw(countHolds(''));
  await knex.raw(quotaTriggers(''));
  await knex.raw('DROP FUNCTION create_job_log_rest');
}
