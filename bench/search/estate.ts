import type pg from 'pg';

/** Sites of one example estate (`npm run demo-data`). */
const SITES = 40;

const ID = (prefix: string, number: string) => `'${prefix}_' || lpad((${number})::text, 26, '0')`;

/** Most sites are of the platform and of one large tenant; four are of a small one. */
const TENANT = `CASE WHEN s % 100 < 40 THEN 'platform' WHEN s % 100 < 90 THEN 'large' WHEN s % 100 < 95 THEN 'medium'
  WHEN s IN (95, 96, 97, 98) THEN 'small' ELSE 'tenant-' || s END`;

/** The sites with their tenant and their name; networks repeat in each estate, in a VRF of its own. */
const SITE = `SELECT s, ${ID('sit', 's')} AS site_id, ${TENANT} AS tenant_id, ${ID('vrf', `s / ${SITES}`)} AS vrf_id,
    '10.' || s % ${SITES} + 1 AS network, to_hex(s) AS hex,
    (ARRAY['ams', 'fra', 'lon', 'par', 'mad', 'mil', 'vie', 'prg', 'waw', 'sto', 'hel', 'osl', 'cph', 'dub'])[1 + s % 14] || 1 + s / 14 AS site
  FROM generate_series($1::integer, $2::integer - 1) AS s`;
const DEVICE = `SELECT *, s * 50 + d AS number, ${ID('dev', 's * 50 + d')} AS device_id, site || '-d' || d + 1 AS device
  FROM (${SITE}) AS sites, generate_series(0, 49) AS d`;
const PORT = `SELECT *, number * 10 + p AS port, ${ID('int', 'number * 10 + p')} AS interface_id FROM (${DEVICE}) AS devices, generate_series(0, 9) AS p`;

const STATEMENTS = [
  `INSERT INTO tenants (id, name) SELECT DISTINCT tenant_id, tenant_id || ' Ltd' FROM (${SITE}) AS t WHERE tenant_id <> 'platform' ON CONFLICT DO NOTHING`,
  `INSERT INTO vrfs (id, tenant_id, name, enforce_unique) SELECT DISTINCT vrf_id, 'platform', 'estate ' || s / ${SITES}, true FROM (${SITE}) AS t`,
  `INSERT INTO sites (id, tenant_id, name, tags) SELECT site_id, tenant_id, site, '{demo}' FROM (${SITE}) AS t`,
  `INSERT INTO racks (id, tenant_id, name, status, site_id, u_height)
    SELECT ${ID('rac', 's * 5 + r')}, tenant_id, site || '-r' || r + 1, 'active', site_id, 42 FROM (${SITE}) AS t, generate_series(0, 4) AS r`,
  `INSERT INTO vlan_groups (id, tenant_id, name, site_id, min_vid, max_vid) SELECT ${ID('vlg', 's')}, tenant_id, site, site_id, 1, 4094 FROM (${SITE}) AS t`,
  `INSERT INTO vlans (id, tenant_id, vid, name, group_id, status, scope_site_id)
    SELECT ${ID('vln', 's * 3 + v')}, tenant_id, 10 * (v + 1), site || '-v' || 10 * (v + 1), ${ID('vlg', 's')}, 'active', site_id
    FROM (${SITE}) AS t, generate_series(0, 2) AS v`,
  `INSERT INTO prefixes (id, tenant_id, cidr, vrf_id, status, allocation_mode, site_id, scope_site_id)
    SELECT ${ID('pfx', 's * 251 + n')}, tenant_id, (CASE n WHEN 250 THEN network || '.0.0/16' ELSE network || '.' || n || '.0/24' END)::cidr,
      vrf_id, 'active', 'pool', site_id, site_id FROM (${SITE}) AS t, generate_series(0, 250) AS n`,
  `INSERT INTO devices (id, tenant_id, name, site_id, rack_id, serial, device_type_id)
    SELECT device_id, tenant_id, device, site_id, ${ID('rac', 's * 5 + d % 5')}, 'S' || s || '-' || d, '${'dty_'.padEnd(30, '0')}' FROM (${DEVICE}) AS t`,
  `INSERT INTO interfaces (id, device_id, name, kind, enabled, management_only, mac_address, tenant_id, site_id)
    SELECT interface_id, device_id, 'et-0/0/' || p, 'fiber', true, false,
      regexp_replace('02' || lpad(to_hex(number), 8, '0') || lpad(to_hex(p), 2, '0'), '(..)(?!$)', '\\1:', 'g'), tenant_id, site_id FROM (${PORT}) AS t`,
  `INSERT INTO cables (id, tenant_id, a_interface_id, b_interface_id, kind, status, a_site_id, a_device_id, b_site_id, b_device_id)
    SELECT ${ID('cab', 'number')}, tenant_id, ${ID('int', '(number - 1) * 10 + 9')}, ${ID('int', 'number * 10')}, 'smf', 'connected',
      site_id, ${ID('dev', 'number - 1')}, site_id, device_id FROM (${DEVICE}) AS t WHERE d > 0`,
  `INSERT INTO ip_addresses (id, tenant_id, address, vrf_id, status, interface_id, device_id, dns_name, scope_site_id, device_site_id, scope_device_id)
    SELECT ${ID('ipa', 's * 1250 + d * 10 + p')}, tenant_id, (network || '.' || (d * 10 + p) / 50 || '.' || 10 + (d * 10 + p) % 50)::inet, vrf_id, 'active',
      interface_id, device_id, CASE p WHEN 0 THEN device || '.example.net' END, site_id, site_id, device_id FROM (${PORT}) AS t`,
  `INSERT INTO ip_addresses (id, tenant_id, address, vrf_id, status, scope_site_id)
    SELECT ${ID('ipa', 's * 1250 + n')}, tenant_id, (network || '.' || n / 50 || '.' || 10 + n % 50)::inet, vrf_id, 'dhcp', site_id
    FROM (${SITE}) AS t, generate_series(500, 1249) AS n`,
  `INSERT INTO approvals (id, tenant_id, type, title, payload, status, execution, required_approvals, content_key, content_hash,
      expires_at, created_by, requester_names, authority, closed_by, closed_at, check_at, created_at, updated_at)
    SELECT ${ID('apr', 'number')}, tenant_id, 'change', 'replace ' || device, '{}', 'rejected', 'none', 1, 'key', 'hash',
      now(), 'bench', '[]', '{"actorId": "bench", "grants": []}', 'other', now(), now(), now(), now() FROM (${DEVICE}) AS t WHERE d < 10`,
];

const CATALOGUE = [
  `INSERT INTO manufacturers (id, name) VALUES ('${'mfr_'.padEnd(30, '0')}', 'Arista')`,
  `INSERT INTO device_types (id, manufacturer_id, model, u_height, full_depth)
    VALUES ('${'dty_'.padEnd(30, '0')}', '${'mfr_'.padEnd(30, '0')}', '7050SX3', 1, true)`,
];

/** Fills the inventory with as many example estates, of tenants of all sizes. Their networks are in VRFs. */
export async function fillEstates(client: pg.Client, estates: number): Promise<void> {
  await client.query('SET session_replication_role = replica');
  for (const statement of CATALOGUE) await client.query(statement);
  for (let estate = 0; estate < estates; estate++)
    for (const statement of STATEMENTS)
      await client.query(statement, [estate * SITES, (estate + 1) * SITES]);
  await client.query('VACUUM ANALYZE');
}

/** A site that the benchmark searches in: its number, its name, and a device, an interface and an address there. */
export const siteOf = (number: number) => {
  const cities = 'ams fra lon par mad mil vie prg waw sto hel osl cph dub'.split(' ');
  return {
    name: `${cities[number % 14] ?? ''}${1 + Math.floor(number / 14)}`,
    id: `sit_${String(number).padStart(26, '0')}`,
    network: `10.${(number % SITES) + 1}`,
    serial: `S${number}-6`,
    macAddress: [
      '02',
      ...((number * 50 + 6).toString(16).padStart(8, '0').match(/../g) ?? []),
      '03',
    ].join(':'),
  };
};
