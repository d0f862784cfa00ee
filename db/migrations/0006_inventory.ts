import type { Knex } from 'knex';

/**
 * The tables of the inventory, with what each row must be by itself. References are checked at the end of the
 * transaction: a change of several records is one. `vrf_key` is the VRF or `global`; `unique_in_vrf` is the VRF's
 * flag, because an index cannot look into another table; `units` and `depth` are the part of the rack that a device
 * takes. What keeps them, and what holds between rows, is in the migration after this one.
 */
export async function up(knex: Knex): Promise<void> {
  await knex.raw(
    `CREATE EXTENSION IF NOT EXISTS btree_gist; CREATE EXTENSION IF NOT EXISTS pg_trgm;`,
  );
  await knex.raw(`CREATE TYPE inet_range AS RANGE (SUBTYPE = inet);`);
  await knex.raw(INET_NUMBER);
  await knex.raw(EARLIER_TABLES);
  for (const table of TABLES) await knex.raw(table);
  await knex.raw(REFERENCES.map(foreignKey).join('\n'));
  for (const [table, columns] of Object.entries(SEARCHED))
    await knex.raw(searchable(table, columns));
  for (const [table, indexes] of Object.entries(LISTED))
    await knex.raw(indexes.map((columns) => `CREATE INDEX ON ${table} (${columns});`).join('\n'));
  await knex.raw(PLACES_FOLLOW);
}

/** An address as a number: the difference of two IPv6 addresses does not fit PostgreSQL's own. */
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

const EARLIER_TABLES = `
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

/** [table, column, table referred to]; a third pair of columns must agree too. */
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

/** With an index that finds who refers to a record, newest first; the children of a prefix in their order. */
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

/** What \`q\` looks into, and the records that have tags or custom fields. */
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

/** Interfaces stand where their device stands. */
const PLACES_FOLLOW = `
  CREATE FUNCTION interfaces_at_device() RETURNS trigger LANGUAGE plpgsql AS $$
  BEGIN
    SELECT tenant_id, site_id INTO NEW.tenant_id, NEW.site_id FROM devices WHERE id = NEW.device_id;
    RETURN NEW;
  END $$;
  CREATE TRIGGER interfaces_at_device BEFORE INSERT OR UPDATE OF device_id ON interfaces
    FOR EACH ROW EXECUTE FUNCTION interfaces_at_device();
  CREATE FUNCTION interfaces_follow_device() RETURNS trigger LANGUAGE plpgsql AS $$
  BEGIN
    UPDATE interfaces SET tenant_id = NEW.tenant_id, site_id = NEW.site_id WHERE device_id = NEW.id;
    RETURN NULL;
  END $$;
  CREATE TRIGGER interfaces_follow_device AFTER INSERT OR UPDATE OF tenant_id, site_id ON devices
    FOR EACH ROW EXECUTE FUNCTION interfaces_follow_device();
`;

export async function down(knex: Knex): Promise<void> {
  await knex.raw(`
    DROP TABLE cables, ip_ranges, prefixes, vlans, vlan_groups, custom_fields, tags, platforms, device_roles, regions, manufacturers, device_types,
      locations, racks, interfaces, ip_addresses, vrfs CASCADE;
    DROP TRIGGER interfaces_follow_device ON devices;
    DROP FUNCTION interfaces_at_device, interfaces_follow_device, inet_number;
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
