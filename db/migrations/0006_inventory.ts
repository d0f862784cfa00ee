import type { Knex } from 'knex';

/**
 * The inventory: its tables, the rules that hold between rows, and file imports.
 *
 * The database enforces the rules of the planner a second time. References and rules that concern
 * several rows are checked at the end of the transaction, because one change may touch several
 * records. Three stored columns exist for constraints and indexes: `vrf_key` is the VRF or
 * `global`; `unique_in_vrf` copies the flag of the VRF, because an index cannot read another table;
 * `units` and `depth` are the part of the rack that a device occupies.
 */
export async function up(knex: Knex): Promise<void> {
  await knex.raw(
    `CREATE EXTENSION IF NOT EXISTS btree_gist; CREATE EXTENSION IF NOT EXISTS pg_trgm;`,
  );
  await knex.raw(`CREATE TYPE inet_range AS RANGE (SUBTYPE = inet);`);
  await knex.raw(INET_NUMBER);
  await knex.raw(EXISTING_TABLES);
  for (const table of TABLES) await knex.raw(table);
  await knex.raw(REFERENCES.map(foreignKey).join('\n'));
  for (const [table, columns] of Object.entries(SEARCHED))
    await knex.raw(searchable(table, columns));
  for (const [table, indexes] of Object.entries(LISTED))
    await knex.raw(indexes.map((columns) => `CREATE INDEX ON ${table} (${columns});`).join('\n'));
  const rules = [INTERFACE_SCOPE, TREES, ADDRESS_SPACE, RACK_SPACE, CABLE_ENDS];
  for (const rule of rules) await knex.raw(rule);
  await knex.raw(IMPORTS);
}

/** An address as a number. The difference of two IPv6 addresses exceeds PostgreSQL's bigint. */
const INET_NUMBER = `
  CREATE FUNCTION inet_number(address inet) RETURNS numeric LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE AS $$
    SELECT sum(get_byte(bytes, i) * power(256::numeric, length(bytes) - 1 - i))
    FROM (SELECT substring(inet_send(address) FROM 5) AS bytes) AS sent, generate_series(0, length(bytes) - 1) AS i
  $$;
`;

const COMMON = `
    description   text NOT NULL DEFAULT '',
    tags          text[] COLLATE "C" NOT NULL DEFAULT '{}',
    custom_fields jsonb NOT NULL DEFAULT '{}',
    created_at    timestamptz NOT NULL DEFAULT now(),
    updated_at    timestamptz NOT NULL DEFAULT now(),
    version       integer NOT NULL DEFAULT 1`;

const EXISTING_TABLES = `
  ALTER TABLE tenants ADD description text NOT NULL DEFAULT '', ADD tags text[] COLLATE "C" NOT NULL DEFAULT '{}', ADD custom_fields jsonb NOT NULL DEFAULT '{}';
  ALTER TABLE sites ADD description text NOT NULL DEFAULT '', ADD tags text[] COLLATE "C" NOT NULL DEFAULT '{}', ADD custom_fields jsonb NOT NULL DEFAULT '{}',
    ADD status text COLLATE "C" NOT NULL DEFAULT 'active', ADD region_id text COLLATE "C", ADD address text, ADD latitude double precision, ADD longitude double precision;
  CREATE UNIQUE INDEX sites_name ON sites (tenant_id, name);
  ALTER TABLE devices ADD description text NOT NULL DEFAULT '', ADD tags text[] COLLATE "C" NOT NULL DEFAULT '{}', ADD custom_fields jsonb NOT NULL DEFAULT '{}',
    ADD status text COLLATE "C" NOT NULL DEFAULT 'active', ADD location_id text COLLATE "C", ADD rack_id text COLLATE "C", ADD position integer,
    ADD face text COLLATE "C" CHECK (face IN ('front', 'rear')), ADD device_type_id text COLLATE "C", ADD role_id text COLLATE "C",
    ADD platform_id text COLLATE "C", ADD serial text, ADD asset_tag text, ADD primary_ip4_id text COLLATE "C", ADD primary_ip6_id text COLLATE "C",
    ADD units int4range, ADD depth int4range,
    ADD CHECK (position IS NULL OR (rack_id IS NOT NULL AND face IS NOT NULL)),
    ADD CONSTRAINT devices_units EXCLUDE USING gist (rack_id WITH =, units WITH &&, depth WITH &&) WHERE (units IS NOT NULL);
  CREATE UNIQUE INDEX devices_name ON devices (site_id, name);
  CREATE UNIQUE INDEX devices_asset_tag ON devices (tenant_id, asset_tag);
`;

const table = (name: string, columns: string, more = '') => `
  CREATE TABLE ${name} (
    id text COLLATE "C" PRIMARY KEY,
    ${columns},${COMMON}${more}
  );`;
const TENANT = 'tenant_id text COLLATE "C" NOT NULL';

const TABLES = [
  table(
    'regions',
    `${TENANT}, name text NOT NULL, parent_id text COLLATE "C"`,
    ', UNIQUE (tenant_id, name), CHECK (parent_id <> id)',
  ),
  table(
    'locations',
    `${TENANT}, name text NOT NULL, status text COLLATE "C" NOT NULL, site_id text COLLATE "C" NOT NULL, parent_id text COLLATE "C"`,
    ', UNIQUE (site_id, name), UNIQUE (id, site_id), CHECK (parent_id <> id)',
  ),
  table(
    'racks',
    `${TENANT}, name text NOT NULL, status text COLLATE "C" NOT NULL, site_id text COLLATE "C" NOT NULL, location_id text COLLATE "C",
    u_height integer NOT NULL CHECK (u_height BETWEEN 1 AND 100), serial text`,
    ', UNIQUE (site_id, name), UNIQUE (id, site_id)',
  ),
  table('manufacturers', 'name text NOT NULL UNIQUE'),
  table(
    'device_types',
    `manufacturer_id text COLLATE "C" NOT NULL, model text NOT NULL, u_height integer NOT NULL CHECK (u_height BETWEEN 0 AND 100),
    full_depth boolean NOT NULL`,
    ', UNIQUE (manufacturer_id, model)',
  ),
  table('device_roles', 'name text NOT NULL UNIQUE, color text'),
  table('platforms', 'name text NOT NULL UNIQUE, manufacturer_id text COLLATE "C"'),
  table('tags', 'name text NOT NULL, color text'),
  table(
    'custom_fields',
    `${TENANT}, resource text COLLATE "C" NOT NULL, name text COLLATE "C" NOT NULL, type text COLLATE "C" NOT NULL, required boolean NOT NULL,
    choices text[] NOT NULL DEFAULT '{}', minimum double precision, maximum double precision`,
    ', UNIQUE (tenant_id, resource, name)',
  ),
  table(
    'interfaces',
    `device_id text COLLATE "C" NOT NULL, name text NOT NULL, kind text COLLATE "C" NOT NULL, enabled boolean NOT NULL,
    management_only boolean NOT NULL, speed_mbps integer, mtu integer, mac_address text COLLATE "C", lag_id text COLLATE "C", vrf_id text COLLATE "C",
    mode text COLLATE "C", untagged_vlan_id text COLLATE "C", tenant_id text COLLATE "C", site_id text COLLATE "C"`,
    ', UNIQUE (device_id, name), UNIQUE (id, device_id), CHECK (lag_id <> id)',
  ),
  table(
    'cables',
    `${TENANT}, a_interface_id text COLLATE "C" NOT NULL, b_interface_id text COLLATE "C" NOT NULL, label text, kind text COLLATE "C" NOT NULL,
    status text COLLATE "C" NOT NULL, length_meters integer`,
    ', CHECK (a_interface_id <> b_interface_id)',
  ),
  table(
    'vrfs',
    `${TENANT}, name text NOT NULL, rd text COLLATE "C" UNIQUE, enforce_unique boolean NOT NULL`,
    ', UNIQUE (tenant_id, name)',
  ),
  table(
    'vlan_groups',
    `${TENANT}, name text NOT NULL, site_id text COLLATE "C", min_vid integer NOT NULL, max_vid integer NOT NULL`,
    ', UNIQUE (tenant_id, name), CHECK (1 <= min_vid AND min_vid <= max_vid AND max_vid <= 4094)',
  ),
  table(
    'vlans',
    `${TENANT}, vid integer NOT NULL CHECK (vid BETWEEN 1 AND 4094), name text NOT NULL, group_id text COLLATE "C", site_id text COLLATE "C",
    status text COLLATE "C" NOT NULL`,
    ', UNIQUE (group_id, vid), UNIQUE (group_id, name)',
  ),
  table(
    'prefixes',
    `${TENANT}, cidr cidr NOT NULL CHECK (masklen(cidr) > 0), vrf_id text COLLATE "C", parent_prefix_id text COLLATE "C", status text COLLATE "C" NOT NULL,
    allocation_mode text COLLATE "C" NOT NULL, site_id text COLLATE "C", vlan_id text COLLATE "C", role_id text COLLATE "C",
    vrf_key text COLLATE "C" NOT NULL GENERATED ALWAYS AS (coalesce(vrf_id, 'global')) STORED, unique_in_vrf boolean NOT NULL DEFAULT true`,
    ', CHECK (parent_prefix_id <> id)',
  ),
  table(
    'ip_ranges',
    `${TENANT}, start_address inet NOT NULL, end_address inet NOT NULL, vrf_id text COLLATE "C", status text COLLATE "C" NOT NULL,
    vrf_key text COLLATE "C" NOT NULL GENERATED ALWAYS AS (coalesce(vrf_id, 'global')) STORED,
    span inet_range NOT NULL GENERATED ALWAYS AS (inet_range(start_address, end_address, '[]')) STORED`,
    `, CHECK (family(start_address) = family(end_address) AND start_address <= end_address), UNIQUE (vrf_key, start_address, end_address),
    CHECK (masklen(start_address) = masklen(end_address) AND masklen(start_address) = CASE family(start_address) WHEN 4 THEN 32 ELSE 128 END)`,
  ),
  table(
    'ip_addresses',
    `${TENANT}, address inet NOT NULL, vrf_id text COLLATE "C", status text COLLATE "C" NOT NULL, role text COLLATE "C",
    interface_id text COLLATE "C", device_id text COLLATE "C", dns_name text,
    vrf_key text COLLATE "C" NOT NULL GENERATED ALWAYS AS (coalesce(vrf_id, 'global')) STORED, unique_in_vrf boolean NOT NULL DEFAULT true,
    host inet NOT NULL GENERATED ALWAYS AS (set_masklen(address, CASE family(address) WHEN 4 THEN 32 ELSE 128 END)) STORED,
    shared integer NOT NULL GENERATED ALWAYS AS (CASE WHEN role IN ('anycast', 'vip', 'vrrp', 'hsrp', 'glbp', 'carp', 'secondary') THEN 1 ELSE 0 END) STORED`,
    ', UNIQUE (id, device_id), CHECK ((interface_id IS NULL) = (device_id IS NULL))',
  ),
];

/** Foreign keys: [table, columns, referenced table]. A composite key also compares the owner. */
const REFERENCES: readonly (readonly [string, string, string])[] = [
  ['regions', 'parent_id', 'regions'],
  ['sites', 'region_id', 'regions'],
  ['locations', 'site_id', 'sites'],
  ['locations', 'parent_id, site_id', 'locations (id, site_id)'],
  ['racks', 'site_id', 'sites'],
  ['racks', 'location_id, site_id', 'locations (id, site_id)'],
  ['device_types', 'manufacturer_id', 'manufacturers'],
  ['platforms', 'manufacturer_id', 'manufacturers'],
  ['devices', 'location_id, site_id', 'locations (id, site_id)'],
  ['devices', 'rack_id, site_id', 'racks (id, site_id)'],
  ['devices', 'device_type_id', 'device_types'],
  ['devices', 'role_id', 'device_roles'],
  ['devices', 'platform_id', 'platforms'],
  ['devices', 'primary_ip4_id, id', 'ip_addresses (id, device_id)'],
  ['devices', 'primary_ip6_id, id', 'ip_addresses (id, device_id)'],
  ['interfaces', 'device_id', 'devices'],
  ['interfaces', 'lag_id, device_id', 'interfaces (id, device_id)'],
  ['interfaces', 'vrf_id', 'vrfs'],
  ['interfaces', 'untagged_vlan_id', 'vlans'],
  ['cables', 'a_interface_id', 'interfaces'],
  ['cables', 'b_interface_id', 'interfaces'],
  ['vlan_groups', 'site_id', 'sites'],
  ['vlans', 'group_id', 'vlan_groups'],
  ['vlans', 'site_id', 'sites'],
  ['prefixes', 'vrf_id', 'vrfs'],
  ['prefixes', 'parent_prefix_id', 'prefixes'],
  ['prefixes', 'site_id', 'sites'],
  ['prefixes', 'vlan_id', 'vlans'],
  ['prefixes', 'role_id', 'device_roles'],
  ['ip_ranges', 'vrf_id', 'vrfs'],
  ['ip_addresses', 'vrf_id', 'vrfs'],
  ['ip_addresses', 'interface_id, device_id', 'interfaces (id, device_id)'],
];

/**
 * A foreign key, with an index that finds referrers newest first. The children of a prefix are
 * indexed in the order of their networks.
 */
const foreignKey = ([from, columns, to]: readonly [string, string, string]): string => `
  ALTER TABLE ${from} ADD FOREIGN KEY (${columns}) REFERENCES ${to.includes('(') ? to : `${to} (id)`} DEFERRABLE INITIALLY DEFERRED;
  CREATE INDEX ON ${from} (${columns === 'parent_prefix_id' ? 'parent_prefix_id, cidr, id' : `${columns.split(',')[0] ?? ''}, id DESC`});`;

const SEARCHED: Readonly<Record<string, string>> = {
  tenants: 'id, name, description',
  regions: 'name, description',
  sites: 'name, address, description',
  locations: 'name, description',
  racks: 'name, serial, description',
  manufacturers: 'name, description',
  device_types: 'model, description',
  device_roles: 'name, description',
  platforms: 'name, description',
  devices: 'name, serial, asset_tag, description',
  interfaces: 'name, mac_address, description',
  cables: 'label, description',
  vrfs: 'name, rd, description',
  vlan_groups: 'name, description',
  vlans: 'name, description',
  prefixes: 'text(cidr), description',
  ip_ranges: 'host(start_address), host(end_address), description',
  ip_addresses: 'text(address), dns_name, description',
  tags: 'id, name, description',
  custom_fields: 'name, description',
};

/** The text that `q` searches, and the indexes on it, on tags and on custom fields. */
const searchable = (name: string, columns: string): string => {
  const parts = columns.split(/, (?![^(]*\))/).map((column) => `lower(coalesce(${column}, ''))`);
  return `
  ALTER TABLE ${name} ADD search text NOT NULL GENERATED ALWAYS AS (${parts.join(` || ' ' || `)}) STORED;
  CREATE INDEX ON ${name} USING gin (search gin_trgm_ops);
  CREATE INDEX ON ${name} USING gin (tags) WHERE tags <> '{}';
  CREATE INDEX ON ${name} USING gin (custom_fields) WHERE custom_fields <> '{}';`;
};

const byTenant = ['tenant_id, id DESC'];
const byName = ['tenant_id, name, id', 'name, id'];
const LISTED: Readonly<Record<string, readonly string[]>> = {
  tenants: ['name, id'],
  regions: [...byTenant, ...byName],
  sites: byName,
  locations: [...byTenant, ...byName],
  racks: [...byTenant, ...byName],
  manufacturers: ['name, id'],
  device_types: ['model, id'],
  device_roles: ['name, id'],
  platforms: ['name, id'],
  devices: [...byName, 'status, id DESC', 'serial', 'asset_tag'],
  interfaces: [...byTenant, ...byName, 'site_id, id DESC', 'kind, id DESC', 'mac_address'],
  cables: [...byTenant, 'label'],
  vrfs: [...byTenant, ...byName],
  vlan_groups: [...byTenant, ...byName],
  vlans: [...byTenant, ...byName, 'vid, id'],
  prefixes: [
    ...byTenant,
    'tenant_id, cidr, id',
    'cidr, id',
    'vrf_key, cidr',
    'vrf_key, parent_prefix_id, cidr',
    'status, id DESC',
  ],
  ip_ranges: [...byTenant, 'tenant_id, start_address, id', 'start_address, id'],
  ip_addresses: [
    ...byTenant,
    'tenant_id, address, id',
    'address, id',
    'vrf_key, host',
    'host, id',
    'dns_name',
    'device_id, id DESC',
    'status, id DESC',
    'role, id DESC',
  ],
  tags: ['name, id'],
  custom_fields: [...byTenant, 'name, id'],
};

/** Interfaces belong to the tenant and the site of their device. */
const INTERFACE_SCOPE = `
  CREATE FUNCTION copy_device_scope() RETURNS trigger LANGUAGE plpgsql AS $$
  BEGIN
    SELECT tenant_id, site_id INTO NEW.tenant_id, NEW.site_id FROM devices WHERE id = NEW.device_id;
    RETURN NEW;
  END $$;
  CREATE TRIGGER interfaces_device_scope BEFORE INSERT OR UPDATE OF device_id ON interfaces
    FOR EACH ROW EXECUTE FUNCTION copy_device_scope();
  CREATE FUNCTION update_interface_scope() RETURNS trigger LANGUAGE plpgsql AS $$
  BEGIN
    UPDATE interfaces SET tenant_id = NEW.tenant_id, site_id = NEW.site_id WHERE device_id = NEW.id;
    RETURN NULL;
  END $$;
  CREATE TRIGGER devices_interface_scope AFTER INSERT OR UPDATE OF tenant_id, site_id ON devices
    FOR EACH ROW EXECUTE FUNCTION update_interface_scope();
`;

const TREES = `
  CREATE FUNCTION reject_cycle() RETURNS trigger LANGUAGE plpgsql AS $$
  DECLARE
    ancestor text := NEW.parent_id;
    steps integer := 0;
  BEGIN
    WHILE ancestor IS NOT NULL LOOP
      steps := steps + 1;
      IF ancestor = NEW.id OR steps > 100 THEN
        RAISE EXCEPTION '% is its own ancestor', NEW.id USING ERRCODE = 'check_violation';
      END IF;
      EXECUTE format('SELECT parent_id FROM %I WHERE id = $1', TG_TABLE_NAME) INTO ancestor USING ancestor;
    END LOOP;
    RETURN NULL;
  END $$;
  CREATE CONSTRAINT TRIGGER regions_tree AFTER INSERT OR UPDATE OF parent_id ON regions DEFERRABLE INITIALLY DEFERRED
    FOR EACH ROW WHEN (NEW.parent_id IS NOT NULL) EXECUTE FUNCTION reject_cycle();
  CREATE CONSTRAINT TRIGGER locations_tree AFTER INSERT OR UPDATE OF parent_id ON locations DEFERRABLE INITIALLY DEFERRED
    FOR EACH ROW WHEN (NEW.parent_id IS NOT NULL) EXECUTE FUNCTION reject_cycle();
`;

const ADDRESS_SPACE = `
  CREATE UNIQUE INDEX prefixes_cidr ON prefixes (vrf_key, cidr) WHERE unique_in_vrf;
  CREATE INDEX ip_ranges_space ON ip_ranges USING gist (vrf_key, span);
  CREATE UNIQUE INDEX ip_addresses_host ON ip_addresses (vrf_key, host) WHERE unique_in_vrf AND shared = 0;
  ALTER TABLE ip_addresses ADD CONSTRAINT ip_addresses_shared
    EXCLUDE USING gist (vrf_key WITH =, host inet_ops WITH =, shared WITH <>) WHERE (unique_in_vrf);

  -- The smallest prefix that contains a network. A network sorts directly after the prefixes that contain it or
  -- after one of their descendants, so the search starts at the preceding prefix and follows its parents.
  CREATE FUNCTION closest_prefix(vrf text, network cidr) RETURNS cidr LANGUAGE plpgsql STABLE AS $$
  DECLARE
    nearest record;
  BEGIN
    SELECT cidr, parent_prefix_id INTO nearest FROM prefixes WHERE vrf_key = vrf AND cidr < network ORDER BY vrf_key DESC, cidr DESC LIMIT 1;
    WHILE nearest.cidr IS NOT NULL AND NOT nearest.cidr >> network LOOP
      SELECT cidr, parent_prefix_id INTO nearest FROM prefixes WHERE id = nearest.parent_prefix_id;
    END LOOP;
    RETURN nearest.cidr;
  END $$;

  -- The outermost prefixes inside a network, which need not be a prefix itself: a range of the children of the
  -- smallest prefix that contains it.
  CREATE FUNCTION prefixes_inside(vrf text, network cidr) RETURNS SETOF text LANGUAGE plpgsql STABLE AS $$
  DECLARE
    container cidr := closest_prefix(vrf, network);
    highest inet := set_masklen(broadcast(network), CASE family(network) WHEN 4 THEN 32 ELSE 128 END);
    ancestor text;
  BEGIN
    IF container IS NULL THEN
      RETURN QUERY SELECT id FROM prefixes WHERE vrf_key = vrf AND parent_prefix_id IS NULL AND cidr > network AND cidr <= highest;
    END IF;
    FOR ancestor IN SELECT id FROM prefixes WHERE vrf_key = vrf AND cidr = container LOOP
      RETURN QUERY SELECT id FROM prefixes WHERE vrf_key = vrf AND parent_prefix_id = ancestor AND cidr > network AND cidr <= highest;
    END LOOP;
  END $$;

  CREATE FUNCTION check_prefix_parent() RETURNS trigger LANGUAGE plpgsql AS $$
  BEGIN
    IF EXISTS (
      SELECT FROM prefixes AS child JOIN prefixes AS parent ON parent.id = child.parent_prefix_id
      WHERE child.id = NEW.id AND NOT (parent.cidr >> child.cidr AND parent.vrf_key = child.vrf_key)
    ) OR EXISTS (
      SELECT FROM prefixes AS parent JOIN prefixes AS child ON child.parent_prefix_id = parent.id
      WHERE parent.id = NEW.id AND TG_OP = 'UPDATE' AND NOT (parent.cidr >> child.cidr AND parent.vrf_key = child.vrf_key)
    ) THEN
      RAISE EXCEPTION 'prefix % is not inside its parent', NEW.id USING ERRCODE = 'check_violation';
    END IF;
    RETURN NULL;
  END $$;
  CREATE CONSTRAINT TRIGGER prefixes_parent AFTER INSERT OR UPDATE OF cidr, vrf_id, parent_prefix_id ON prefixes
    DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION check_prefix_parent();

  CREATE FUNCTION check_range_overlap() RETURNS trigger LANGUAGE plpgsql AS $$
  BEGIN
    IF EXISTS (
      SELECT FROM ip_ranges AS one JOIN ip_ranges AS other ON other.vrf_key = one.vrf_key AND other.span && one.span AND other.id <> one.id
      WHERE one.id = NEW.id AND NOT (other.span @> one.span OR one.span @> other.span)
    ) THEN
      RAISE EXCEPTION 'range % partly overlaps another', NEW.id USING ERRCODE = 'exclusion_violation';
    END IF;
    RETURN NULL;
  END $$;
  CREATE CONSTRAINT TRIGGER ip_ranges_overlap AFTER INSERT OR UPDATE OF start_address, end_address, vrf_id ON ip_ranges
    DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION check_range_overlap();

  CREATE FUNCTION copy_vrf_uniqueness() RETURNS trigger LANGUAGE plpgsql AS $$
  BEGIN
    NEW.unique_in_vrf := coalesce((SELECT enforce_unique FROM vrfs WHERE id = NEW.vrf_id), true);
    RETURN NEW;
  END $$;
  CREATE TRIGGER prefixes_vrf_uniqueness BEFORE INSERT OR UPDATE OF vrf_id ON prefixes FOR EACH ROW WHEN (NEW.vrf_id IS NOT NULL) EXECUTE FUNCTION copy_vrf_uniqueness();
  CREATE TRIGGER prefixes_global_uniqueness BEFORE UPDATE OF vrf_id ON prefixes FOR EACH ROW WHEN (NEW.vrf_id IS NULL) EXECUTE FUNCTION copy_vrf_uniqueness();
  CREATE TRIGGER ip_addresses_vrf_uniqueness BEFORE INSERT OR UPDATE OF vrf_id ON ip_addresses FOR EACH ROW WHEN (NEW.vrf_id IS NOT NULL) EXECUTE FUNCTION copy_vrf_uniqueness();
  CREATE TRIGGER ip_addresses_global_uniqueness BEFORE UPDATE OF vrf_id ON ip_addresses FOR EACH ROW WHEN (NEW.vrf_id IS NULL) EXECUTE FUNCTION copy_vrf_uniqueness();
  CREATE FUNCTION update_vrf_uniqueness() RETURNS trigger LANGUAGE plpgsql AS $$
  BEGIN
    UPDATE prefixes SET unique_in_vrf = NEW.enforce_unique WHERE vrf_key = NEW.id;
    UPDATE ip_addresses SET unique_in_vrf = NEW.enforce_unique WHERE vrf_key = NEW.id;
    RETURN NULL;
  END $$;
  CREATE TRIGGER vrfs_uniqueness AFTER UPDATE OF enforce_unique ON vrfs FOR EACH ROW
    WHEN (OLD.enforce_unique <> NEW.enforce_unique) EXECUTE FUNCTION update_vrf_uniqueness();

  -- Below 'next_free' a prefix has no free block of this length. Deleting or moving records in the prefix deletes the hint.
  CREATE TABLE free_hints (
    prefix_id text COLLATE "C" NOT NULL REFERENCES prefixes (id) ON DELETE CASCADE,
    length    integer NOT NULL,
    vrf_key   text COLLATE "C" NOT NULL,
    cidr      cidr NOT NULL,
    next_free inet NOT NULL,
    PRIMARY KEY (prefix_id, length)
  );
  CREATE INDEX free_hints_space ON free_hints USING gist (vrf_key, cidr inet_ops);
  CREATE FUNCTION reset_free_hints_of_prefix() RETURNS trigger LANGUAGE plpgsql AS $$
  BEGIN
    IF TG_OP = 'UPDATE' THEN
      IF NEW.cidr = OLD.cidr AND NEW.vrf_key = OLD.vrf_key THEN RETURN NULL; END IF;
      DELETE FROM free_hints WHERE prefix_id = OLD.id;
    END IF;
    DELETE FROM free_hints WHERE vrf_key = OLD.vrf_key AND cidr && OLD.cidr;
    RETURN NULL;
  END $$;
  CREATE FUNCTION reset_free_hints_of_address() RETURNS trigger LANGUAGE plpgsql AS $$
  BEGIN
    IF TG_OP = 'UPDATE' THEN
      IF NEW.host = OLD.host AND NEW.vrf_key = OLD.vrf_key THEN RETURN NULL; END IF;
    END IF;
    DELETE FROM free_hints WHERE vrf_key = OLD.vrf_key AND cidr >>= OLD.host AND next_free > OLD.host;
    RETURN NULL;
  END $$;
  CREATE FUNCTION reset_free_hints_of_range() RETURNS trigger LANGUAGE plpgsql AS $$
  BEGIN
    IF TG_OP = 'UPDATE' THEN
      IF NEW.span = OLD.span AND NEW.vrf_key = OLD.vrf_key THEN RETURN NULL; END IF;
    END IF;
    DELETE FROM free_hints WHERE vrf_key = OLD.vrf_key AND next_free > OLD.start_address
      AND inet_range(host(cidr)::inet, host(broadcast(cidr))::inet, '[]') && OLD.span;
    RETURN NULL;
  END $$;
  CREATE TRIGGER prefixes_free_hints AFTER DELETE OR UPDATE OF cidr, vrf_id ON prefixes FOR EACH ROW EXECUTE FUNCTION reset_free_hints_of_prefix();
  CREATE TRIGGER ip_addresses_free_hints AFTER DELETE OR UPDATE OF address, vrf_id ON ip_addresses FOR EACH ROW EXECUTE FUNCTION reset_free_hints_of_address();
  CREATE TRIGGER ip_ranges_free_hints AFTER DELETE OR UPDATE OF start_address, end_address, vrf_id ON ip_ranges FOR EACH ROW EXECUTE FUNCTION reset_free_hints_of_range();
`;

const RACK_SPACE = `
  CREATE FUNCTION compute_device_units() RETURNS trigger LANGUAGE plpgsql AS $$
  DECLARE
    type device_types;
    rack racks;
  BEGIN
    NEW.units := NULL;
    NEW.depth := NULL;
    IF NEW.position IS NULL THEN RETURN NEW; END IF;
    SELECT * INTO type FROM device_types WHERE id = NEW.device_type_id;
    SELECT * INTO rack FROM racks WHERE id = NEW.rack_id;
    IF type.id IS NULL OR rack.id IS NULL OR type.u_height = 0 OR NEW.position + type.u_height - 1 > rack.u_height THEN
      RAISE EXCEPTION 'device % does not fit its rack', NEW.id USING ERRCODE = 'check_violation';
    END IF;
    NEW.units := int4range(NEW.position, NEW.position + type.u_height);
    NEW.depth := CASE WHEN type.full_depth THEN int4range(0, 2) WHEN NEW.face = 'front' THEN int4range(0, 1) ELSE int4range(1, 2) END;
    RETURN NEW;
  END $$;
  CREATE TRIGGER devices_units BEFORE INSERT OR UPDATE OF rack_id, position, face, device_type_id ON devices
    FOR EACH ROW EXECUTE FUNCTION compute_device_units();
  CREATE FUNCTION recompute_device_units() RETURNS trigger LANGUAGE plpgsql AS $$
  BEGIN
    IF TG_TABLE_NAME = 'racks' THEN
      UPDATE devices SET position = position WHERE rack_id = NEW.id AND position IS NOT NULL;
    ELSE
      UPDATE devices SET position = position WHERE device_type_id = NEW.id AND position IS NOT NULL;
    END IF;
    RETURN NULL;
  END $$;
  CREATE TRIGGER device_types_units AFTER UPDATE OF u_height, full_depth ON device_types FOR EACH ROW
    WHEN (OLD.u_height <> NEW.u_height OR OLD.full_depth <> NEW.full_depth) EXECUTE FUNCTION recompute_device_units();
  CREATE TRIGGER racks_units AFTER UPDATE OF u_height ON racks FOR EACH ROW
    WHEN (NEW.u_height < OLD.u_height) EXECUTE FUNCTION recompute_device_units();
`;

/** One row for each end of a cable. Its key prevents a second cable on an interface. */
const CABLE_ENDS = `
  CREATE TABLE cable_ends (
    interface_id text COLLATE "C" PRIMARY KEY,
    cable_id     text COLLATE "C" NOT NULL REFERENCES cables (id) ON DELETE CASCADE
  );
  CREATE INDEX cable_ends_cable ON cable_ends (cable_id);
  CREATE FUNCTION store_cable_ends() RETURNS trigger LANGUAGE plpgsql AS $$
  BEGIN
    DELETE FROM cable_ends WHERE cable_id = NEW.id;
    INSERT INTO cable_ends (interface_id, cable_id) VALUES (NEW.a_interface_id, NEW.id), (NEW.b_interface_id, NEW.id);
    RETURN NULL;
  END $$;
  CREATE TRIGGER cables_ends AFTER INSERT OR UPDATE OF a_interface_id, b_interface_id ON cables FOR EACH ROW EXECUTE FUNCTION store_cable_ends();
`;

/**
 * Imported files and their rows. A row has an outcome as soon as it is written, so that an
 * interrupted import continues after the last such row.
 */
const IMPORTS = `
  CREATE TABLE imports (
    id         text COLLATE "C" PRIMARY KEY,
    tenant_id  text COLLATE "C" NOT NULL,
    job_id     text COLLATE "C" NOT NULL,
    resource   text COLLATE "C",
    dry_run    boolean NOT NULL,
    rows       integer NOT NULL,
    done       integer NOT NULL DEFAULT 0,
    authority  json NOT NULL,
    created_by text NOT NULL,
    created_at timestamptz NOT NULL
  );
  CREATE INDEX imports_tenant ON imports (tenant_id, id DESC);
  CREATE INDEX imports_job ON imports (job_id);
  CREATE TABLE import_rows (
    import_id text COLLATE "C" NOT NULL,
    line      integer NOT NULL,
    mutation  json NOT NULL,
    outcome   text COLLATE "C" CHECK (outcome IN ('created', 'updated', 'deleted', 'invalid', 'conflict')),
    record_id text COLLATE "C",
    report    json,
    PRIMARY KEY (import_id, line)
  );
  CREATE INDEX import_rows_outcome ON import_rows (import_id, outcome, line);
`;

export async function down(knex: Knex): Promise<void> {
  await knex.raw(`
    DROP TABLE import_rows, imports, cable_ends, free_hints, cables, ip_ranges, prefixes, vlans, vlan_groups, custom_fields, tags, platforms, device_roles,
      regions, manufacturers, device_types, locations, racks, interfaces, ip_addresses, vrfs CASCADE;
    DROP TRIGGER devices_units ON devices;
    DROP TRIGGER devices_interface_scope ON devices;
    DROP FUNCTION copy_device_scope, update_interface_scope, reject_cycle, check_prefix_parent, check_range_overlap, copy_vrf_uniqueness,
      update_vrf_uniqueness, reset_free_hints_of_prefix, reset_free_hints_of_address, reset_free_hints_of_range, compute_device_units,
      recompute_device_units, store_cable_ends, prefixes_inside, closest_prefix, inet_number CASCADE;
    DROP INDEX sites_name, devices_name, devices_asset_tag;
    ALTER TABLE devices DROP search, DROP units, DROP depth, DROP primary_ip6_id, DROP primary_ip4_id, DROP asset_tag, DROP serial, DROP platform_id, DROP role_id,
      DROP device_type_id, DROP face, DROP position, DROP rack_id, DROP location_id, DROP status, DROP custom_fields, DROP tags, DROP description;
    ALTER TABLE sites DROP search, DROP longitude, DROP latitude, DROP address, DROP region_id, DROP status, DROP custom_fields, DROP tags, DROP description;
    ALTER TABLE tenants DROP search, DROP custom_fields, DROP tags, DROP description;
    DROP INDEX IF EXISTS sites_tenant_id_name_id_idx, devices_tenant_id_name_id_idx, sites_name_id_idx, devices_name_id_idx, tenants_name_id_idx;
    DROP TYPE inet_range;
    DROP EXTENSION btree_gist;
    DROP EXTENSION pg_trgm;
  `);
}
