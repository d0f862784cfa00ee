import type { Knex } from 'knex';

type Table = { scope: string; text?: string; where?: string; replaces?: string };

const AT_SITE: Table = { scope: 'tenant_id, site_id' };
const IN_TENANT: Table = { scope: 'tenant_id' };
const INHERITED: Table = { scope: 'tenant_id, scope_site_id' };

/** Tables with the columns by which rows are readable; `text` is what searches compare. */
const TABLES: Readonly<Record<string, Table>> = {
  regions: IN_TENANT,
  sites: IN_TENANT,
  locations: AT_SITE,
  racks: AT_SITE,
  devices: AT_SITE,
  interfaces: { scope: 'tenant_id, site_id, device_id' },
  cables: { scope: 'tenant_id, a_site_id, a_device_id, b_site_id, b_device_id' },
  vrfs: IN_TENANT,
  vlan_groups: AT_SITE,
  vlans: INHERITED,
  prefixes: INHERITED,
  ip_ranges: INHERITED,
  ip_addresses: { scope: 'tenant_id, device_site_id, scope_device_id, scope_site_id' },
  custom_fields: IN_TENANT,
  schedules: {
    ...IN_TENANT,
    text: 'lower(name)',
    where: 'WHERE deleted_at IS NULL',
    replaces: 'schedules_search',
  },
  approvals: {
    scope: 'tenant_id, scope_site_id, scope_device_id',
    text: 'lower(title)',
    replaces: 'approvals_search',
  },
  users: {
    ...IN_TENANT,
    text: "lower(username || ' ' || display_name)",
    replaces: 'users_search',
  },
};

/** Indexes of tables without a tenant. */
const COMMON: Readonly<Record<string, string>> = {
  tenants_beginnings: 'tenants (left(search, 2) text_pattern_ops)',
  tenants_names: 'tenants (left(lower(name), 2) text_pattern_ops)',
  tags_beginnings: 'tags (left(search, 2) text_pattern_ops)',
  tags_names: 'tags (left(lower(name), 2) text_pattern_ops)',
  manufacturers_beginnings: 'manufacturers (left(search, 2) text_pattern_ops)',
  device_types_beginnings: 'device_types (left(search, 2) text_pattern_ops)',
  device_roles_beginnings: 'device_roles (left(search, 2) text_pattern_ops)',
  platforms_beginnings: 'platforms (left(search, 2) text_pattern_ops)',
};

/**
 * A search reads nothing that its caller may not read: the trigram indexes have the tenant, the sites
 * and the devices of records too, and a lookup intersects the entries of both. Those of a text that
 * every tenant has are many; those of a small tenant or of a site are few, and decide what is read.
 *
 * Texts of one or two characters have no trigram. The first two characters of all texts have an index,
 * which stores each pair once.
 */
export async function up(knex: Knex): Promise<void> {
  await knex.raw('CREATE EXTENSION IF NOT EXISTS btree_gin');
  for (const [name, { scope, text = 'search', where = '', replaces }] of Object.entries(TABLES))
    await knex.raw(`
      DROP INDEX ${replaces ?? `${name}_search_idx`};
      CREATE INDEX ${name}_search ON ${name} USING gin (${scope}, (${text}) gin_trgm_ops) ${where};
      CREATE INDEX ${name}_beginnings ON ${name} (left(${text}, 2) text_pattern_ops) ${where};
      CREATE INDEX ${name}_beginnings_in_tenants ON ${name} (tenant_id, left(${text}, 2) text_pattern_ops) ${where};
    `);
  for (const [name, definition] of Object.entries(COMMON))
    await knex.raw(`CREATE INDEX ${name} ON ${definition}`);
}

export async function down(knex: Knex): Promise<void> {
  for (const [name, { text = 'search', where = '', replaces }] of Object.entries(TABLES))
    await knex.raw(`
      DROP INDEX ${name}_search, ${name}_beginnings, ${name}_beginnings_in_tenants;
      CREATE INDEX ${replaces ?? `${name}_search_idx`} ON ${name} USING gin ((${text}) gin_trgm_ops) ${where};
    `);
  await knex.raw(`DROP INDEX ${Object.keys(COMMON).join(', ')}`);
  await knex.raw('DROP EXTENSION btree_gin');
}
