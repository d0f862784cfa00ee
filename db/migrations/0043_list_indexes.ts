import type { Knex } from 'knex';

/**
 * Indexes for what lists filter and sort by. Fields of few values share one index of a table, which
 * stores each combination once; states that most records have are left out where they can be.
 *
 * `asked_for` are jobs that are not of the system: what people see of the jobs by default.
 */
const INDEXES: Readonly<Record<string, string>> = {
  devices_changed: 'devices (tenant_id, updated_at, id)',
  devices_all_changed: 'devices (updated_at, id)',
  devices_serials: 'devices (tenant_id, serial, id)',
  devices_mounted: 'devices (face, position)',
  interfaces_changed: 'interfaces (tenant_id, updated_at, id)',
  interfaces_all_changed: 'interfaces (updated_at, id)',
  interfaces_settings: 'interfaces (enabled, management_only, mode, speed_mbps, mtu)',
  cables_changed: 'cables (tenant_id, updated_at, id)',
  cables_all_changed: 'cables (updated_at, id)',
  cables_labels: 'cables (tenant_id, label, id)',
  cables_kinds: 'cables (status, kind, length_meters)',
  vlans_changed: 'vlans (tenant_id, updated_at, id)',
  vlans_all_changed: 'vlans (updated_at, id)',
  vlans_status: 'vlans (status, id DESC)',
  prefixes_changed: 'prefixes (tenant_id, updated_at, id)',
  prefixes_all_changed: 'prefixes (updated_at, id)',
  prefixes_modes: 'prefixes (allocation_mode, id DESC)',
  ip_ranges_changed: 'ip_ranges (tenant_id, updated_at, id)',
  ip_ranges_all_changed: 'ip_ranges (updated_at, id)',
  ip_ranges_status: 'ip_ranges (status, id DESC)',
  ip_ranges_ends: 'ip_ranges (end_address)',
  ip_addresses_changed: 'ip_addresses (tenant_id, updated_at, id)',
  ip_addresses_all_changed: 'ip_addresses (updated_at, id)',
  ip_addresses_dns_names: 'ip_addresses (tenant_id, dns_name, id)',
  jobs_asked_for: `jobs (id DESC) WHERE source_kind <> 'webhook' AND source_kind <> 'system'`,
  jobs_sources: `jobs (source_kind, id DESC) WHERE source_kind <> 'webhook' AND source_kind <> 'api'`,
  deliveries_tenant: 'deliveries (tenant_id, id DESC)',
  deliveries_ended: `deliveries (status, id DESC) WHERE status IN ('failed', 'cancelled')`,
};

export async function up(knex: Knex): Promise<void> {
  for (const [name, definition] of Object.entries(INDEXES))
    await knex.raw(`CREATE INDEX ${name} ON ${definition}`);
}

export const down = async (knex: Knex): Promise<void> =>
  void (await knex.raw(`DROP INDEX ${Object.keys(INDEXES).join(', ')}`));
