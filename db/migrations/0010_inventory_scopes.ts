import type { Knex } from 'knex';

/**
 * The sites and devices that inventory records belong to through other records, as columns that
 * lists can filter by: an address belongs to the site of its prefix and to the device of its
 * interface, a cable to the devices at its ends. Only records of the same tenant count.
 */
export async function up(knex: Knex): Promise<void> {
  for (const statement of [COLUMNS, INDEXES, SITE_OF_SPACE, RECALCULATE, TRIGGERS])
    await knex.raw(statement);
  await knex.raw('SELECT recalculate_inventory_scopes()');
}

const COLUMNS = `
  ALTER TABLE prefixes ADD scope_site_id text COLLATE "C";
  ALTER TABLE ip_ranges ADD scope_site_id text COLLATE "C";
  ALTER TABLE ip_addresses ADD scope_site_id text COLLATE "C", ADD device_site_id text COLLATE "C",
    ADD scope_device_id text COLLATE "C";
  ALTER TABLE vlans ADD scope_site_id text COLLATE "C";
  ALTER TABLE cables ADD a_site_id text COLLATE "C", ADD a_device_id text COLLATE "C",
    ADD b_site_id text COLLATE "C", ADD b_device_id text COLLATE "C";
`;

/** Most records belong to no site through others, so that partial indexes stay small. */
const INDEXED: readonly (readonly [string, string])[] = [
  ['prefixes', 'scope_site_id'],
  ['ip_ranges', 'scope_site_id'],
  ['ip_addresses', 'scope_site_id'],
  ['ip_addresses', 'device_site_id'],
  ['ip_addresses', 'scope_device_id'],
  ['vlans', 'scope_site_id'],
  ['cables', 'a_site_id'],
  ['cables', 'a_device_id'],
  ['cables', 'b_site_id'],
  ['cables', 'b_device_id'],
];

const INDEXES = `
  ${INDEXED.map(([table, column]) => `CREATE INDEX ON ${table} (${column}, id DESC) WHERE ${column} IS NOT NULL;`).join('\n')}
  CREATE INDEX prefixes_of_sites ON prefixes (vrf_key, tenant_id, cidr DESC, id) WHERE site_id IS NOT NULL;
`;

const SITE_OF_SPACE = `
  -- The site of the smallest prefix of a tenant that contains a network and has a site. Everything that sorts
  -- between a prefix and a network in it is in that prefix too: when the preceding prefix does not contain the
  -- network, the one that does also contains the network that spans both.
  CREATE FUNCTION site_of_space(vrf text, tenant text, network inet, except_id text) RETURNS text LANGUAGE plpgsql STABLE AS $$
  DECLARE
    bound inet := network;
    found record;
  BEGIN
    LOOP
      SELECT p.cidr, p.site_id INTO found FROM prefixes AS p
        WHERE p.vrf_key = vrf AND p.tenant_id = tenant AND p.site_id IS NOT NULL AND p.cidr <= bound AND p.id <> except_id
        ORDER BY p.cidr DESC, p.id LIMIT 1;
      IF found.cidr IS NULL OR family(found.cidr) <> family(network) THEN RETURN NULL; END IF;
      IF found.cidr >>= network THEN RETURN found.site_id; END IF;
      bound := inet_merge(found.cidr, network);
    END LOOP;
  END $$;
`;

/** After the restore of some of the records, and when the columns are new. */
const RECALCULATE = `
  CREATE FUNCTION recalculate_inventory_scopes() RETURNS void LANGUAGE plpgsql AS $$
  BEGIN
    UPDATE prefixes AS t SET scope_site_id = n.site
      FROM (SELECT id, coalesce(site_id, site_of_space(vrf_key, tenant_id, cidr, id)) AS site FROM prefixes) AS n
      WHERE t.id = n.id AND t.scope_site_id IS DISTINCT FROM n.site;
    UPDATE ip_ranges AS t SET scope_site_id = n.site
      FROM (SELECT id, site_of_space(vrf_key, tenant_id, inet_merge(start_address, end_address), '') AS site FROM ip_ranges) AS n
      WHERE t.id = n.id AND t.scope_site_id IS DISTINCT FROM n.site;
    UPDATE ip_addresses AS t SET scope_site_id = n.site, device_site_id = n.device_site, scope_device_id = n.device
      FROM (SELECT a.id, site_of_space(a.vrf_key, a.tenant_id, a.host, '') AS site, d.site_id AS device_site, d.id AS device
        FROM ip_addresses AS a LEFT JOIN devices AS d ON d.id = a.device_id AND d.tenant_id = a.tenant_id) AS n
      WHERE t.id = n.id AND (t.scope_site_id, t.device_site_id, t.scope_device_id) IS DISTINCT FROM (n.site, n.device_site, n.device);
    UPDATE vlans AS t SET scope_site_id = n.site
      FROM (SELECT v.id, coalesce(v.site_id, g.site_id) AS site
        FROM vlans AS v LEFT JOIN vlan_groups AS g ON g.id = v.group_id AND g.tenant_id = v.tenant_id) AS n
      WHERE t.id = n.id AND t.scope_site_id IS DISTINCT FROM n.site;
    UPDATE cables AS t SET a_site_id = n.a_site, a_device_id = n.a_device, b_site_id = n.b_site, b_device_id = n.b_device
      FROM (SELECT c.id, a.site_id AS a_site, a.device_id AS a_device, b.site_id AS b_site, b.device_id AS b_device FROM cables AS c
        LEFT JOIN interfaces AS a ON a.id = c.a_interface_id AND a.tenant_id = c.tenant_id
        LEFT JOIN interfaces AS b ON b.id = c.b_interface_id AND b.tenant_id = c.tenant_id) AS n
      WHERE t.id = n.id AND (t.a_site_id, t.a_device_id, t.b_site_id, t.b_device_id) IS DISTINCT FROM (n.a_site, n.a_device, n.b_site, n.b_device);
  END $$;
`;

/**
 * A record gets its sites and devices when it is written, and again when a record changes that it
 * belongs to. Only prefixes with a site change those of their contents.
 */
const TRIGGERS = `
  CREATE FUNCTION set_prefix_scope() RETURNS trigger LANGUAGE plpgsql AS $$
  BEGIN
    NEW.scope_site_id := coalesce(NEW.site_id, site_of_space(coalesce(NEW.vrf_id, 'global'), NEW.tenant_id, NEW.cidr, NEW.id));
    RETURN NEW;
  END $$;
  CREATE TRIGGER prefixes_scope BEFORE INSERT OR UPDATE OF tenant_id, cidr, vrf_id, site_id ON prefixes
    FOR EACH ROW EXECUTE FUNCTION set_prefix_scope();

  CREATE FUNCTION set_range_scope() RETURNS trigger LANGUAGE plpgsql AS $$
  BEGIN
    NEW.scope_site_id := site_of_space(coalesce(NEW.vrf_id, 'global'), NEW.tenant_id, inet_merge(NEW.start_address, NEW.end_address), '');
    RETURN NEW;
  END $$;
  CREATE TRIGGER ip_ranges_scope BEFORE INSERT OR UPDATE OF tenant_id, start_address, end_address, vrf_id ON ip_ranges
    FOR EACH ROW EXECUTE FUNCTION set_range_scope();

  CREATE FUNCTION set_address_scope() RETURNS trigger LANGUAGE plpgsql AS $$
  BEGIN
    NEW.scope_site_id := site_of_space(coalesce(NEW.vrf_id, 'global'), NEW.tenant_id, host(NEW.address)::inet, '');
    SELECT site_id, id INTO NEW.device_site_id, NEW.scope_device_id FROM devices WHERE id = NEW.device_id AND tenant_id = NEW.tenant_id;
    RETURN NEW;
  END $$;
  CREATE TRIGGER ip_addresses_scope BEFORE INSERT OR UPDATE OF tenant_id, address, vrf_id, device_id ON ip_addresses
    FOR EACH ROW EXECUTE FUNCTION set_address_scope();

  CREATE FUNCTION set_vlan_scope() RETURNS trigger LANGUAGE plpgsql AS $$
  BEGIN
    NEW.scope_site_id := coalesce(NEW.site_id, (SELECT site_id FROM vlan_groups WHERE id = NEW.group_id AND tenant_id = NEW.tenant_id));
    RETURN NEW;
  END $$;
  CREATE TRIGGER vlans_scope BEFORE INSERT OR UPDATE OF tenant_id, group_id, site_id ON vlans
    FOR EACH ROW EXECUTE FUNCTION set_vlan_scope();

  CREATE FUNCTION set_cable_scope() RETURNS trigger LANGUAGE plpgsql AS $$
  BEGIN
    SELECT site_id, device_id INTO NEW.a_site_id, NEW.a_device_id FROM interfaces WHERE id = NEW.a_interface_id AND tenant_id = NEW.tenant_id;
    SELECT site_id, device_id INTO NEW.b_site_id, NEW.b_device_id FROM interfaces WHERE id = NEW.b_interface_id AND tenant_id = NEW.tenant_id;
    RETURN NEW;
  END $$;
  CREATE TRIGGER cables_scope BEFORE INSERT OR UPDATE OF tenant_id, a_interface_id, b_interface_id ON cables
    FOR EACH ROW EXECUTE FUNCTION set_cable_scope();

  CREATE FUNCTION update_scopes_in(vrf text, tenant text, network cidr) RETURNS void LANGUAGE plpgsql AS $$
  DECLARE
    lowest inet := host(network)::inet;
    highest inet := set_masklen(broadcast(network), CASE family(network) WHEN 4 THEN 32 ELSE 128 END);
  BEGIN
    UPDATE prefixes AS t SET scope_site_id = n.site
      FROM (SELECT p.id, site_of_space(vrf, tenant, p.cidr, p.id) AS site FROM prefixes AS p
        WHERE p.vrf_key = vrf AND p.cidr >= network AND p.cidr <= highest AND p.tenant_id = tenant AND p.site_id IS NULL) AS n
      WHERE t.id = n.id AND t.scope_site_id IS DISTINCT FROM n.site;
    UPDATE ip_ranges AS t SET scope_site_id = n.site
      FROM (SELECT r.id, site_of_space(vrf, tenant, inet_merge(r.start_address, r.end_address), '') AS site FROM ip_ranges AS r
        WHERE r.vrf_key = vrf AND r.span && inet_range(lowest, highest, '[]') AND r.tenant_id = tenant) AS n
      WHERE t.id = n.id AND t.scope_site_id IS DISTINCT FROM n.site;
    UPDATE ip_addresses AS t SET scope_site_id = n.site
      FROM (SELECT a.id, site_of_space(vrf, tenant, a.host, '') AS site FROM ip_addresses AS a
        WHERE a.vrf_key = vrf AND a.host BETWEEN lowest AND highest AND a.tenant_id = tenant) AS n
      WHERE t.id = n.id AND t.scope_site_id IS DISTINCT FROM n.site;
  END $$;
  CREATE FUNCTION update_prefix_contents() RETURNS trigger LANGUAGE plpgsql AS $$
  BEGIN
    IF TG_OP <> 'INSERT' THEN PERFORM update_scopes_in(OLD.vrf_key, OLD.tenant_id, OLD.cidr); END IF;
    IF TG_OP <> 'DELETE' THEN PERFORM update_scopes_in(NEW.vrf_key, NEW.tenant_id, NEW.cidr); END IF;
    RETURN NULL;
  END $$;
  CREATE TRIGGER prefixes_contents_inserted AFTER INSERT ON prefixes
    FOR EACH ROW WHEN (NEW.site_id IS NOT NULL) EXECUTE FUNCTION update_prefix_contents();
  CREATE TRIGGER prefixes_contents_deleted AFTER DELETE ON prefixes
    FOR EACH ROW WHEN (OLD.site_id IS NOT NULL) EXECUTE FUNCTION update_prefix_contents();
  CREATE TRIGGER prefixes_contents_updated AFTER UPDATE OF tenant_id, cidr, vrf_id, site_id ON prefixes
    FOR EACH ROW WHEN ((OLD.site_id IS NOT NULL OR NEW.site_id IS NOT NULL)
      AND (OLD.tenant_id, OLD.cidr, OLD.vrf_id, OLD.site_id) IS DISTINCT FROM (NEW.tenant_id, NEW.cidr, NEW.vrf_id, NEW.site_id))
    EXECUTE FUNCTION update_prefix_contents();

  CREATE FUNCTION update_addresses_of_device() RETURNS trigger LANGUAGE plpgsql AS $$
  BEGIN
    UPDATE ip_addresses AS t SET
      device_site_id = CASE WHEN t.tenant_id = NEW.tenant_id THEN NEW.site_id END,
      scope_device_id = CASE WHEN t.tenant_id = NEW.tenant_id THEN NEW.id END
    WHERE t.device_id = NEW.id;
    RETURN NULL;
  END $$;
  CREATE TRIGGER devices_address_scope AFTER UPDATE OF tenant_id, site_id ON devices
    FOR EACH ROW EXECUTE FUNCTION update_addresses_of_device();

  CREATE FUNCTION update_vlans_of_group() RETURNS trigger LANGUAGE plpgsql AS $$
  BEGIN
    UPDATE vlans AS t SET scope_site_id = coalesce(t.site_id, CASE WHEN t.tenant_id = NEW.tenant_id THEN NEW.site_id END)
    WHERE t.group_id = NEW.id;
    RETURN NULL;
  END $$;
  CREATE TRIGGER vlan_groups_vlan_scope AFTER UPDATE OF tenant_id, site_id ON vlan_groups
    FOR EACH ROW EXECUTE FUNCTION update_vlans_of_group();

  CREATE FUNCTION update_cables_of_interface() RETURNS trigger LANGUAGE plpgsql AS $$
  BEGIN
    UPDATE cables AS t SET
      a_site_id = CASE WHEN t.tenant_id = NEW.tenant_id THEN NEW.site_id END,
      a_device_id = CASE WHEN t.tenant_id = NEW.tenant_id THEN NEW.device_id END
    WHERE t.a_interface_id = NEW.id;
    UPDATE cables AS t SET
      b_site_id = CASE WHEN t.tenant_id = NEW.tenant_id THEN NEW.site_id END,
      b_device_id = CASE WHEN t.tenant_id = NEW.tenant_id THEN NEW.device_id END
    WHERE t.b_interface_id = NEW.id;
    RETURN NULL;
  END $$;
  CREATE TRIGGER interfaces_cable_scope AFTER UPDATE OF tenant_id, site_id ON interfaces
    FOR EACH ROW EXECUTE FUNCTION update_cables_of_interface();
`;

export async function down(knex: Knex): Promise<void> {
  await knex.raw(`
    DROP FUNCTION update_cables_of_interface, update_vlans_of_group, update_addresses_of_device, update_prefix_contents,
      update_scopes_in, set_cable_scope, set_vlan_scope, set_address_scope, set_range_scope, set_prefix_scope,
      recalculate_inventory_scopes, site_of_space CASCADE;
    DROP INDEX prefixes_of_sites;
    ALTER TABLE cables DROP a_site_id, DROP a_device_id, DROP b_site_id, DROP b_device_id;
    ALTER TABLE vlans DROP scope_site_id;
    ALTER TABLE ip_addresses DROP scope_site_id, DROP device_site_id, DROP scope_device_id;
    ALTER TABLE ip_ranges DROP scope_site_id;
    ALTER TABLE prefixes DROP scope_site_id;
  `);
}
