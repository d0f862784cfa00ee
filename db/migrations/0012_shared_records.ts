import type { Knex } from 'knex';

/**
 * Tenants that a record is shared with: they may read it and refer to it. Records of the platform to
 * which tenants already refer are shared with these, so that they can go on using them.
 *
 * Grants do not follow a site or a device to another tenant any more, in whatever way it moves.
 */
export async function up(knex: Knex): Promise<void> {
  await knex.raw(GRANTS_STAY);
  for (const [table, referrers] of Object.entries(REFERRERS)) {
    await knex.raw(`
      ALTER TABLE ${table} ADD shared_with text[] COLLATE "C" NOT NULL DEFAULT '{}';
      CREATE INDEX ON ${table} USING gin (shared_with) WHERE shared_with <> '{}';
    `);
    const used = referrers
      .map(
        ([from, column]) =>
          `SELECT ${column} AS id, tenant_id FROM ${from} WHERE ${column} IS NOT NULL`,
      )
      .join(' UNION ');
    await knex.raw(`
      UPDATE ${table} AS t SET shared_with = r.tenants
      FROM (SELECT id, array_agg(tenant_id ORDER BY tenant_id) AS tenants
        FROM (${used}) AS used WHERE tenant_id <> 'platform' GROUP BY id) AS r
      WHERE t.id = r.id AND t.tenant_id = 'platform';
    `);
  }
}

/** The columns that refer to records of each table. */
const REFERRERS: Readonly<Record<string, readonly (readonly [table: string, column: string])[]>> = {
  regions: [
    ['regions', 'parent_id'],
    ['sites', 'region_id'],
  ],
  sites: [
    ['locations', 'site_id'],
    ['racks', 'site_id'],
    ['devices', 'site_id'],
    ['vlan_groups', 'site_id'],
    ['vlans', 'site_id'],
    ['prefixes', 'site_id'],
  ],
  locations: [
    ['locations', 'parent_id'],
    ['racks', 'location_id'],
    ['devices', 'location_id'],
  ],
  racks: [['devices', 'rack_id']],
  interfaces: [
    ['cables', 'a_interface_id'],
    ['cables', 'b_interface_id'],
    ['ip_addresses', 'interface_id'],
  ],
  vrfs: [
    ['interfaces', 'vrf_id'],
    ['prefixes', 'vrf_id'],
    ['ip_ranges', 'vrf_id'],
    ['ip_addresses', 'vrf_id'],
  ],
  vlan_groups: [['vlans', 'group_id']],
  vlans: [
    ['interfaces', 'untagged_vlan_id'],
    ['prefixes', 'vlan_id'],
  ],
};

const GRANTS_STAY = `
  CREATE OR REPLACE FUNCTION grants_follow_site() RETURNS trigger LANGUAGE plpgsql AS $$
  BEGIN
    DELETE FROM grants WHERE level = 'site' AND site_id = NEW.id;
    RETURN NULL;
  END $$;
  CREATE OR REPLACE FUNCTION grants_follow_device() RETURNS trigger LANGUAGE plpgsql AS $$
  BEGIN
    IF OLD.tenant_id IS DISTINCT FROM NEW.tenant_id THEN
      DELETE FROM grants WHERE level = 'device' AND device_id = NEW.id;
    ELSE
      UPDATE grants SET site_id = NEW.site_id WHERE level = 'device' AND device_id = NEW.id;
    END IF;
    RETURN NULL;
  END $$;
`;

const GRANTS_FOLLOW = `
  CREATE OR REPLACE FUNCTION grants_follow_site() RETURNS trigger LANGUAGE plpgsql AS $$
  BEGIN
    UPDATE grants SET tenant_id = NEW.tenant_id WHERE level = 'site' AND site_id = NEW.id;
    RETURN NULL;
  END $$;
  CREATE OR REPLACE FUNCTION grants_follow_device() RETURNS trigger LANGUAGE plpgsql AS $$
  BEGIN
    UPDATE grants SET tenant_id = NEW.tenant_id, site_id = NEW.site_id WHERE level = 'device' AND device_id = NEW.id;
    RETURN NULL;
  END $$;
`;

export async function down(knex: Knex): Promise<void> {
  await knex.raw(GRANTS_FOLLOW);
  for (const table of Object.keys(REFERRERS))
    await knex.raw(`ALTER TABLE ${table} DROP shared_with`);
}
