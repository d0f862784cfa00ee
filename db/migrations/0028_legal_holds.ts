import type { Knex } from 'knex';

/**
 * Legal holds. While one is in force, triggers refuse with HF004 what would delete a held record: the
 * DETAIL has the hold. Their names start with `hold_`; they stay enabled during restores.
 *
 * A transaction that deletes records of a tenant shares a lock with the other ones until it ends.
 * The creation of a hold takes the lock alone, so that no deletion that has not seen the hold commits after it.
 */
export async function up(knex: Knex): Promise<void> {
  await knex.raw(TABLE);
  await knex.raw(FUNCTIONS);
  for (const [table, kind, tenant] of INVENTORY) await knex.raw(deleteTrigger(table, kind, tenant));
  for (const [table, kind] of MARKED) await knex.raw(markTrigger(table, kind));
  await knex.raw(`
    CREATE TRIGGER hold_backups_delete AFTER UPDATE OF status ON backups FOR EACH ROW
      WHEN (OLD.status = 'completed' AND NEW.status = 'deleting')
      EXECUTE FUNCTION refuse_held_backup();
  `);
}

const TABLE = `
  CREATE TABLE legal_holds (
    id              text COLLATE "C" PRIMARY KEY,
    tenant_id       text COLLATE "C" NOT NULL,
    level           text COLLATE "C" NOT NULL CHECK (level IN ('platform', 'tenant')),
    subject_type    text COLLATE "C",
    subject_id      text COLLATE "C",
    reason          text NOT NULL,
    starts_at       timestamptz,
    ends_at         timestamptz,
    created_by      text NOT NULL,
    created_at      timestamptz NOT NULL,
    released_by     text,
    released_at     timestamptz,
    release_reason  text,
    updated_at      timestamptz NOT NULL,
    version         integer NOT NULL,
    CHECK ((subject_type IS NULL) = (subject_id IS NULL)),
    CHECK ((released_at IS NULL) = (released_by IS NULL))
  );
  CREATE INDEX legal_holds_tenant ON legal_holds (tenant_id, id DESC);
  CREATE INDEX legal_holds_subject ON legal_holds (subject_type, subject_id) WHERE released_at IS NULL;
  CREATE INDEX legal_holds_whole_tenants ON legal_holds (tenant_id)
    WHERE released_at IS NULL AND subject_id IS NULL;

  CREATE FUNCTION legal_holds_are_kept() RETURNS trigger LANGUAGE plpgsql AS $$
  BEGIN
    RAISE EXCEPTION 'legal holds are released, never deleted' USING ERRCODE = 'insufficient_privilege';
  END $$;
  CREATE TRIGGER hold_no_delete BEFORE DELETE ON legal_holds
    FOR EACH ROW EXECUTE FUNCTION legal_holds_are_kept();
  CREATE TRIGGER hold_no_truncate BEFORE TRUNCATE ON legal_holds
    FOR EACH STATEMENT EXECUTE FUNCTION legal_holds_are_kept();

  CREATE TRIGGER quota_legalholds_insert_added AFTER INSERT ON legal_holds FOR EACH ROW
    WHEN (NEW.tenant_id <> 'platform' AND NEW.released_at IS NULL)
    EXECUTE FUNCTION count_quota_row('legalHolds', 'added');
  CREATE TRIGGER quota_legalholds_update_removed AFTER UPDATE ON legal_holds FOR EACH ROW
    WHEN (OLD.tenant_id <> 'platform' AND OLD.released_at IS NULL AND NEW.released_at IS NOT NULL)
    EXECUTE FUNCTION count_quota_row('legalHolds', 'removed');
`;

const FUNCTIONS = `
  CREATE FUNCTION is_in_force(hold legal_holds) RETURNS boolean LANGUAGE sql AS $$
    SELECT hold.released_at IS NULL
      AND (hold.starts_at IS NULL OR hold.starts_at <= clock_timestamp())
      AND (hold.ends_at IS NULL OR hold.ends_at > clock_timestamp());
  $$;

  CREATE FUNCTION share_hold_lock(tenants text[]) RETURNS void LANGUAGE plpgsql AS $$
  DECLARE
    tenant text;
  BEGIN
    -- All transactions take the locks in one order: they cannot deadlock.
    FOR tenant IN SELECT DISTINCT t FROM unnest(tenants || 'platform'::text) AS t ORDER BY t LOOP
      PERFORM pg_advisory_xact_lock_shared(hashtextextended('legal-hold:' || tenant, 0));
    END LOOP;
  END $$;

  CREATE FUNCTION refuse_if_held(hold legal_holds) RETURNS void LANGUAGE plpgsql AS $$
  BEGIN
    IF hold.id IS NOT NULL THEN
      RAISE EXCEPTION 'a legal hold is in force' USING ERRCODE = 'HF004',
        DETAIL = json_build_object('id', hold.id, 'tenantId', hold.tenant_id)::text;
    END IF;
  END $$;

  CREATE FUNCTION refuse_held_rows() RETURNS trigger LANGUAGE plpgsql AS $$
  DECLARE
    tenants text[];
    hold legal_holds;
  BEGIN
    EXECUTE format('SELECT array_agg(DISTINCT (%s)::text) FROM removed AS r', TG_ARGV[1]) INTO tenants;
    IF tenants IS NULL THEN RETURN NULL; END IF;
    PERFORM share_hold_lock(tenants);
    FOR hold IN SELECT * FROM legal_holds AS h WHERE h.released_at IS NULL AND h.subject_id IS NULL
      AND h.tenant_id = ANY (tenants || 'platform'::text) AND is_in_force(h) LIMIT 1
    LOOP
      PERFORM refuse_if_held(hold);
    END LOOP;
    FOR hold IN SELECT h.* FROM legal_holds AS h JOIN removed AS r ON r.id = h.subject_id
      WHERE h.released_at IS NULL AND h.subject_type = TG_ARGV[0] AND is_in_force(h) LIMIT 1
    LOOP
      PERFORM refuse_if_held(hold);
    END LOOP;
    RETURN NULL;
  END $$;

  CREATE FUNCTION refuse_held_row() RETURNS trigger LANGUAGE plpgsql AS $$
  DECLARE
    hold legal_holds;
  BEGIN
    PERFORM share_hold_lock(ARRAY[OLD.tenant_id]);
    SELECT * INTO hold FROM legal_holds AS h WHERE h.released_at IS NULL AND is_in_force(h)
      AND (h.subject_id IS NULL AND h.tenant_id IN (OLD.tenant_id, 'platform')
        OR h.subject_type = TG_ARGV[0] AND h.subject_id = OLD.id) LIMIT 1;
    PERFORM refuse_if_held(hold);
    RETURN NULL;
  END $$;

  CREATE FUNCTION refuse_held_backup() RETURNS trigger LANGUAGE plpgsql AS $$
  DECLARE
    hold legal_holds;
  BEGIN
    PERFORM share_hold_lock(ARRAY[OLD.tenant_id]);
    SELECT * INTO hold FROM legal_holds AS h WHERE h.released_at IS NULL AND is_in_force(h)
      AND (OLD.tenant_id = 'platform' OR h.tenant_id IN (OLD.tenant_id, 'platform')) LIMIT 1;
    PERFORM refuse_if_held(hold);
    RETURN NULL;
  END $$;
`;

/** Table, kind of its records, and SQL of the tenant of the row `r`. */
const INVENTORY: readonly (readonly [table: string, kind: string, tenant: string])[] = [
  ['tenants', 'tenant', 'r.id'],
  ['regions', 'region', 'r.tenant_id'],
  ['sites', 'site', 'r.tenant_id'],
  ['locations', 'location', 'r.tenant_id'],
  ['racks', 'rack', 'r.tenant_id'],
  ['manufacturers', 'manufacturer', "'platform'"],
  ['device_types', 'device-type', "'platform'"],
  ['device_roles', 'device-role', "'platform'"],
  ['platforms', 'platform', "'platform'"],
  ['tags', 'tag', "'platform'"],
  ['devices', 'device', 'r.tenant_id'],
  ['interfaces', 'interface', 'r.tenant_id'],
  ['cables', 'cable', 'r.tenant_id'],
  ['vrfs', 'vrf', 'r.tenant_id'],
  ['vlan_groups', 'vlan-group', 'r.tenant_id'],
  ['vlans', 'vlan', 'r.tenant_id'],
  ['prefixes', 'prefix', 'r.tenant_id'],
  ['ip_ranges', 'ip-range', 'r.tenant_id'],
  ['ip_addresses', 'ip-address', 'r.tenant_id'],
  ['custom_fields', 'custom-field', 'r.tenant_id'],
];

/** Tables whose deleted rows stay, marked by `deleted_at`, and the kind of their records. */
const MARKED: readonly (readonly [table: string, kind: string])[] = [
  ['webhooks', 'webhook'],
  ['schedules', 'schedule'],
];

const deleteTrigger = (table: string, kind: string, tenant: string): string => `
  CREATE TRIGGER hold_${table}_delete AFTER DELETE ON ${table} REFERENCING OLD TABLE AS removed
    FOR EACH STATEMENT EXECUTE FUNCTION refuse_held_rows('${kind}', ${quoted(tenant)});`;

const markTrigger = (table: string, kind: string): string => `
  CREATE TRIGGER hold_${table}_mark AFTER UPDATE OF deleted_at ON ${table} FOR EACH ROW
    WHEN (OLD.deleted_at IS NULL AND NEW.deleted_at IS NOT NULL)
    EXECUTE FUNCTION refuse_held_row('${kind}');
  CREATE TRIGGER hold_${table}_delete AFTER DELETE ON ${table} FOR EACH ROW
    EXECUTE FUNCTION refuse_held_row('${kind}');`;

const quoted = (text: string): string => `'${text.replaceAll("'", "''")}'`;

export async function down(knex: Knex): Promise<void> {
  await knex.raw(`
    DROP FUNCTION refuse_held_rows, refuse_held_row, refuse_held_backup CASCADE;
    DROP TABLE legal_holds CASCADE;
    DROP FUNCTION legal_holds_are_kept, share_hold_lock;
  `);
}
