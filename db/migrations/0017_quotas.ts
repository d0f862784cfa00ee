import type { Knex } from 'knex';

/**
 * Quotas of tenants. `quota_usage` is a ledger: triggers add an entry for each statement that adds
 * or removes counted rows, so that concurrent changes do not wait for one row, and entries are
 * folded from time to time. What a tenant owns is the sum of its entries. The platform has none.
 *
 * A deferred trigger compares the sum with the limit when the transaction commits, and raises HF002
 * if the transaction has exceeded it. Near the limit such commits run one after another. Further
 * away, those that add little share the lock: their sum cannot reach the limit.
 *
 * The limits that `tenant_quotas` does not have are the setting `holdfast.quota_defaults` of the
 * connection. Triggers whose names start with `quota_` stay enabled during restores.
 *
 * The number of sessions of a user is limited too: the oldest ends for a new one.
 */
export async function up(knex: Knex): Promise<void> {
  await knex.raw(endReasons("'too_many_sessions',"));
  await knex.raw(TABLES);
  await knex.raw(FUNCTIONS);
  for (const [table, quota, counted] of COUNTED_ROWS)
    await knex.raw(rowTriggers(table, quota, counted));
  for (const table of INVENTORY) await knex.raw(inventoryTriggers(table));
}

const endReasons = (more: string): string => `
  ALTER TABLE sessions DROP CONSTRAINT sessions_end_reason_check, ADD CONSTRAINT sessions_end_reason_check
    CHECK (end_reason IN (${more} 'logout', 'token_reuse', 'password_change', 'disabled', 'revoked', 'provider_disabled'));`;

const TABLES = `
  CREATE TABLE tenant_quotas (
    tenant_id  text COLLATE "C" PRIMARY KEY,
    limits     jsonb NOT NULL,
    created_at timestamptz NOT NULL,
    updated_at timestamptz NOT NULL,
    version    integer NOT NULL
  );
  CREATE TABLE quota_usage (
    id         bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    tenant_id  text COLLATE "C" NOT NULL,
    quota      text COLLATE "C" NOT NULL,
    change     bigint NOT NULL,
    written_by xid8 NOT NULL DEFAULT pg_current_xact_id()
  );
  CREATE INDEX quota_usage_tenant ON quota_usage (tenant_id, quota);
  CREATE INDEX quota_usage_written_by ON quota_usage (written_by) WHERE written_by <> '0';
`;

const FUNCTIONS = `
  CREATE FUNCTION count_quota_row() RETURNS trigger LANGUAGE plpgsql AS $$
  BEGIN
    IF TG_ARGV[1] = 'added' THEN
      PERFORM set_config('holdfast.quota_checked', '', true);
      INSERT INTO quota_usage (tenant_id, quota, change) VALUES (NEW.tenant_id, TG_ARGV[0], 1);
    ELSE
      INSERT INTO quota_usage (tenant_id, quota, change) VALUES (OLD.tenant_id, TG_ARGV[0], -1);
    END IF;
    RETURN NULL;
  END $$;

  CREATE FUNCTION count_quota_rows() RETURNS trigger LANGUAGE plpgsql AS $$
  BEGIN
    PERFORM set_config('holdfast.quota_checked', '', true);
    INSERT INTO quota_usage (tenant_id, quota, change)
      SELECT tenant_id, 'inventoryRecords', CASE TG_OP WHEN 'INSERT' THEN count(*) ELSE -count(*) END
      FROM counted_rows WHERE tenant_id <> 'platform' GROUP BY tenant_id;
    RETURN NULL;
  END $$;

  CREATE FUNCTION fold_quota_usage(tenant text, name text) RETURNS void LANGUAGE sql AS $$
    WITH folded AS (
      DELETE FROM quota_usage WHERE id IN (
        SELECT id FROM quota_usage
        WHERE tenant_id = tenant AND quota = name AND written_by <> pg_current_xact_id()
        FOR UPDATE SKIP LOCKED)
      RETURNING change
    )
    INSERT INTO quota_usage (tenant_id, quota, change, written_by)
      SELECT tenant, name, sum(change), '0' FROM folded HAVING sum(change) <> 0;
  $$;

  CREATE FUNCTION quota_used(tenant text, name text) RETURNS bigint LANGUAGE plpgsql AS $$
  BEGIN
    RETURN (SELECT coalesce(sum(change), 0) FROM quota_usage WHERE tenant_id = tenant AND quota = name);
  END $$;

  CREATE FUNCTION check_quota(tenant text, name text, own bigint) RETURNS void LANGUAGE plpgsql AS $$
  DECLARE
    lock_key bigint := hashtextextended('quota:' || tenant || '/' || name, 0);
    -- Transactions that commit concurrently, and how much each may add while sharing the lock.
    writers CONSTANT bigint := current_setting('max_connections')::bigint;
    small CONSTANT bigint := 10;
    most CONSTANT bigint := coalesce(
      (SELECT limits ->> name FROM tenant_quotas WHERE tenant_id = tenant),
      nullif(current_setting('holdfast.quota_defaults', true), '')::json ->> name);
    is_far boolean := false;
    total record;
  BEGIN
    IF most IS NULL THEN RETURN; END IF;
    IF own > 0 AND own <= small AND quota_used(tenant, name) + 2 * writers * small <= most THEN
      -- Raising a shared lock to an exclusive one would deadlock. The block releases it first.
      BEGIN
        PERFORM pg_advisory_xact_lock_shared(lock_key);
        IF quota_used(tenant, name) + writers * small > most THEN
          RAISE EXCEPTION 'the limit is near' USING ERRCODE = 'HF003';
        END IF;
        is_far := true;
      EXCEPTION WHEN SQLSTATE 'HF003' THEN NULL;
      END;
    END IF;
    IF own > 0 AND NOT is_far THEN PERFORM pg_advisory_xact_lock(lock_key); END IF;
    SELECT coalesce(sum(change), 0) AS used, count(*) AS entries INTO total
      FROM quota_usage WHERE tenant_id = tenant AND quota = name;
    IF own > 0 AND NOT is_far AND total.used > most THEN
      RAISE EXCEPTION 'a quota is exceeded' USING ERRCODE = 'HF002', DETAIL = json_build_object(
        'tenantId', tenant, 'name', name, 'limit', most, 'used', total.used - own)::text;
    END IF;
    IF total.entries > 100 AND current_setting('transaction_isolation') = 'read committed' THEN
      PERFORM fold_quota_usage(tenant, name);
    END IF;
  END $$;

  CREATE FUNCTION check_quotas() RETURNS trigger LANGUAGE plpgsql AS $$
  DECLARE
    added record;
  BEGIN
    IF current_setting('holdfast.quota_checked', true) = 'on' OR current_setting('holdfast.quotas', true) = 'off' THEN
      RETURN NULL;
    END IF;
    -- All transactions take the locks in one order: they cannot deadlock.
    FOR added IN
      SELECT tenant_id, quota, sum(change) AS own FROM quota_usage
      WHERE written_by = pg_current_xact_id() AND written_by <> '0'
      GROUP BY tenant_id, quota HAVING bool_or(change > 0) ORDER BY tenant_id, quota
    LOOP
      PERFORM check_quota(added.tenant_id, added.quota, added.own::bigint);
    END LOOP;
    PERFORM set_config('holdfast.quota_checked', 'on', true);
    RETURN NULL;
  END $$;
  CREATE CONSTRAINT TRIGGER quota_usage_checked AFTER INSERT ON quota_usage DEFERRABLE INITIALLY DEFERRED
    FOR EACH ROW WHEN (NEW.change > 0 AND NEW.written_by <> '0') EXECUTE FUNCTION check_quotas();

  CREATE FUNCTION forget_quotas_of_tenant() RETURNS trigger LANGUAGE plpgsql AS $$
  BEGIN
    DELETE FROM tenant_quotas WHERE tenant_id = OLD.id;
    RETURN NULL;
  END $$;
  CREATE TRIGGER tenants_quotas AFTER DELETE ON tenants FOR EACH ROW EXECUTE FUNCTION forget_quotas_of_tenant();
`;

/** Table, quota, and the condition for rows that count; `r` is the row. */
const COUNTED_ROWS: readonly (readonly [string, string, string])[] = [
  ['schedules', 'schedules', 'r.deleted_at IS NULL'],
  ['webhooks', 'webhooks', 'r.deleted_at IS NULL'],
  ['jobs', 'unfinishedJobs', "r.status IN ('queued', 'running') AND r.source_kind <> 'webhook'"],
  [
    'jobs',
    'unfinishedImports',
    "r.status IN ('queued', 'running') AND r.type = 'inventory.import'",
  ],
  ['approvals', 'openApprovals', "r.status = 'pending'"],
  ['backups', 'backups', "r.status IN ('queued', 'running', 'completed')"],
  ['users', 'users', 'true'],
  ['grants', 'grants', 'true'],
  ['custom_fields', 'customFields', 'true'],
  ['idempotency_keys', 'idempotencyKeys', 'true'],
];

const INVENTORY = [
  'regions',
  'sites',
  'locations',
  'racks',
  'devices',
  'interfaces',
  'cables',
  'vrfs',
  'vlan_groups',
  'vlans',
  'prefixes',
  'ip_ranges',
  'ip_addresses',
];

function rowTriggers(table: string, quota: string, condition: string): string {
  const counted = `(r.tenant_id <> 'platform' AND ${condition})`;
  const [before, after] = ['OLD', 'NEW'].map((row) => counted.replaceAll(/\br\./g, `${row}.`));
  const stays = `(${before} AND ${after} AND OLD.tenant_id = NEW.tenant_id)`;
  const create = (event: string, change: 'added' | 'removed', when: string) =>
    `CREATE TRIGGER quota_${quota.toLowerCase()}_${event.toLowerCase()}_${change} AFTER ${event} ON ${table}
       FOR EACH ROW WHEN (${when}) EXECUTE FUNCTION count_quota_row('${quota}', '${change}');`;
  return `
    ${create('INSERT', 'added', after ?? '')}
    ${create('UPDATE', 'removed', `${before} AND ${stays} IS NOT TRUE`)}
    ${create('UPDATE', 'added', `${after} AND ${stays} IS NOT TRUE`)}
    ${create('DELETE', 'removed', before ?? '')}
    INSERT INTO quota_usage (tenant_id, quota, change, written_by)
      SELECT tenant_id, '${quota}', count(*), '0' FROM ${table} AS r WHERE ${counted} GROUP BY tenant_id;`;
}

function inventoryTriggers(table: string): string {
  const moved = 'OLD.tenant_id IS DISTINCT FROM NEW.tenant_id';
  const move = (row: string, change: 'added' | 'removed') =>
    `CREATE TRIGGER quota_${table}_${change} AFTER UPDATE ON ${table} FOR EACH ROW
       WHEN (${moved} AND ${row}.tenant_id <> 'platform') EXECUTE FUNCTION count_quota_row('inventoryRecords', '${change}');`;
  return `
    CREATE TRIGGER quota_${table}_insert AFTER INSERT ON ${table} REFERENCING NEW TABLE AS counted_rows
      FOR EACH STATEMENT EXECUTE FUNCTION count_quota_rows();
    CREATE TRIGGER quota_${table}_delete AFTER DELETE ON ${table} REFERENCING OLD TABLE AS counted_rows
      FOR EACH STATEMENT EXECUTE FUNCTION count_quota_rows();
    ${move('OLD', 'removed')}
    ${move('NEW', 'added')}
    INSERT INTO quota_usage (tenant_id, quota, change, written_by)
      SELECT tenant_id, 'inventoryRecords', count(*), '0' FROM ${table} WHERE tenant_id <> 'platform' GROUP BY tenant_id;`;
}

export async function down(knex: Knex): Promise<void> {
  await knex.raw(`
    UPDATE sessions SET end_reason = 'revoked' WHERE end_reason = 'too_many_sessions';
    ${endReasons('')}
    DROP FUNCTION count_quota_row, count_quota_rows, check_quotas, forget_quotas_of_tenant CASCADE;
    DROP FUNCTION check_quota, quota_used, fold_quota_usage;
    DROP TABLE quota_usage, tenant_quotas;
  `);
}
