import type { Knex } from 'knex';

/**
 * Address spaces. The global table and the VRFs of the platform are shared: each tenant has an
 * address space of its own there, and the prefixes of the platform are parents in all of them. A
 * VRF of a tenant is one space. The space of a record is the column `space_key`: a VRF, or
 * `<vrf>/<tenant>` in a shared table. Parents are computed again; no record gets a new version.
 */
export async function up(knex: Knex): Promise<void> {
  for (const statement of [COLUMNS, INDEXES, CONTAINMENT, CONSTRAINTS, SHARING, FREE_HINTS, SCOPES])
    await knex.raw(statement);
  await knex.raw(RECALCULATE);
  await knex.raw('SELECT recalculate_prefix_parents()');
  await knex.raw('SET CONSTRAINTS ALL IMMEDIATE; SET CONSTRAINTS ALL DEFERRED;');
}

const TABLES = ['prefixes', 'ip_ranges', 'ip_addresses'];

const COLUMNS = TABLES.map(
  (table) => `
  ALTER TABLE ${table} ADD in_shared_table boolean NOT NULL DEFAULT true;
  UPDATE ${table} AS t SET in_shared_table = false FROM vrfs AS v WHERE v.id = t.vrf_id AND v.tenant_id <> 'platform';
  SET CONSTRAINTS ALL IMMEDIATE;
  SET CONSTRAINTS ALL DEFERRED;
  ALTER TABLE ${table} ADD space_key text COLLATE "C" NOT NULL GENERATED ALWAYS AS
    (coalesce(vrf_id, 'global') || CASE WHEN in_shared_table THEN '/' || tenant_id ELSE '' END) STORED;`,
).join('\n');

/**
 * A query over one space uses `space_key`. A query over all tenants of a shared table, which only
 * prefixes of the platform need, uses the indexes on networks and parents without a space.
 */
const INDEXES = `
  DROP INDEX prefixes_cidr, prefixes_vrf_key_cidr_idx, prefixes_vrf_key_parent_prefix_id_cidr_idx, ip_addresses_host;
  ALTER TABLE ip_addresses DROP CONSTRAINT ip_addresses_shared;
  ALTER TABLE ip_ranges DROP CONSTRAINT ip_ranges_vrf_key_start_address_end_address_key;
  CREATE UNIQUE INDEX prefixes_cidr ON prefixes (space_key, cidr) WHERE unique_in_vrf;
  CREATE INDEX ON prefixes (space_key, cidr);
  CREATE INDEX ON prefixes (space_key, parent_prefix_id, cidr);
  CREATE UNIQUE INDEX ip_addresses_host ON ip_addresses (space_key, host) WHERE unique_in_vrf AND shared = 0;
  CREATE INDEX ON ip_addresses (space_key, host);
  ALTER TABLE ip_addresses ADD CONSTRAINT ip_addresses_shared
    EXCLUDE USING gist (space_key WITH =, host inet_ops WITH =, shared WITH <>) WHERE (unique_in_vrf);
  ALTER TABLE ip_ranges ADD UNIQUE (space_key, start_address, end_address);
  CREATE INDEX ip_ranges_tenant_space ON ip_ranges USING gist (space_key, span);
`;

const CONTAINMENT = `
  DROP FUNCTION prefixes_inside(text, cidr);
  DROP FUNCTION closest_prefix(text, cidr);

  -- The space of a tenant's records in a VRF, or in the table 'global'.
  CREATE FUNCTION space_of(vrf text, tenant text) RETURNS text LANGUAGE sql STABLE AS $$
    SELECT CASE WHEN vrf = 'global' THEN 'global/' || tenant
      ELSE coalesce((SELECT v.id || '/' || tenant FROM vrfs AS v WHERE v.id = vrf AND v.tenant_id = 'platform'), vrf) END
  $$;

  -- The space whose prefixes are parents in this one as well; null where there is none.
  CREATE FUNCTION shared_space(space text) RETURNS text LANGUAGE sql IMMUTABLE AS $$
    SELECT CASE WHEN strpos(space, '/') > 0 THEN split_part(space, '/', 1) || '/platform' END
  $$;

  -- The networks that contain a network or equal it.
  CREATE FUNCTION supernets(network inet) RETURNS cidr[] LANGUAGE sql IMMUTABLE AS $$
    SELECT array_agg(network(set_masklen(network, length))) FROM generate_series(1, masklen(network)) AS length
  $$;

  -- The networks of one space that contain a network or equal it, the smallest first. A network sorts directly
  -- after the prefixes that contain it or after one of their descendants, so the search starts at the preceding
  -- prefix and follows its parents. Above a parent in another space it continues with the preceding prefix of the
  -- network that spans both: everything that sorts between a prefix and a network in it is in that prefix too.
  CREATE FUNCTION prefixes_around(space text, network inet) RETURNS SETOF cidr LANGUAGE plpgsql STABLE AS $$
  DECLARE
    bound inet := network;
    found record;
    last cidr;
  BEGIN
    LOOP
      SELECT p.cidr, p.parent_prefix_id, p.space_key INTO found FROM prefixes AS p
        WHERE p.space_key = space AND p.cidr <= bound ORDER BY p.space_key DESC, p.cidr DESC LIMIT 1;
      IF found.cidr IS NULL OR family(found.cidr) <> family(network) THEN RETURN; END IF;
      WHILE found.space_key = space LOOP
        last := found.cidr;
        IF last >>= network THEN RETURN NEXT last; END IF;
        IF found.parent_prefix_id IS NULL THEN RETURN; END IF;
        SELECT p.cidr, p.parent_prefix_id, p.space_key INTO found FROM prefixes AS p WHERE p.id = found.parent_prefix_id;
      END LOOP;
      bound := CASE WHEN last >>= network THEN network(set_masklen(last::inet, masklen(last) - 1)) ELSE inet_merge(last, network) END;
      IF masklen(bound) = 0 THEN RETURN; END IF;
    END LOOP;
  END $$;

  -- The outermost prefixes of a space inside a network, which need not be a prefix itself: a range of the children
  -- of the smallest prefix that contains it, of the space or else of the platform. A prefix of the platform becomes
  -- the parent of what any tenant has directly inside it, also where a larger prefix of that tenant is the parent.
  CREATE FUNCTION prefixes_inside(space text, network cidr) RETURNS SETOF text LANGUAGE plpgsql STABLE AS $$
  DECLARE
    shared text := shared_space(space);
    highest inet := set_masklen(broadcast(network), CASE family(network) WHEN 4 THEN 32 ELSE 128 END);
    own_container cidr;
    shared_container cidr;
    ancestors text[];
  BEGIN
    SELECT c INTO own_container FROM prefixes_around(space, network) AS c WHERE c <> network LIMIT 1;
    IF space = shared THEN
      SELECT array_agg(p.id) INTO ancestors FROM prefixes AS p
        WHERE p.cidr = ANY (supernets(network)) AND p.vrf_key = split_part(space, '/', 1) AND p.cidr <> network
          AND (p.cidr = own_container OR p.tenant_id <> 'platform');
      RETURN QUERY SELECT p.id FROM prefixes AS p WHERE p.parent_prefix_id = ANY (ancestors) AND p.cidr > network AND p.cidr <= highest;
      IF own_container IS NULL THEN
        RETURN QUERY SELECT p.id FROM prefixes AS p WHERE p.vrf_key = split_part(space, '/', 1) AND p.parent_prefix_id IS NULL
          AND p.cidr > network AND p.cidr <= highest;
      END IF;
      RETURN;
    END IF;
    IF shared IS NOT NULL THEN
      SELECT c INTO shared_container FROM prefixes_around(shared, network) AS c WHERE c <> network LIMIT 1;
    END IF;
    IF shared_container IS NOT NULL AND (own_container IS NULL OR masklen(shared_container) > masklen(own_container)) THEN
      SELECT array_agg(p.id) INTO ancestors FROM prefixes AS p WHERE p.space_key = shared AND p.cidr = shared_container;
    ELSIF own_container IS NOT NULL THEN
      SELECT array_agg(p.id) INTO ancestors FROM prefixes AS p WHERE p.space_key = space AND p.cidr = own_container;
    ELSE
      RETURN QUERY SELECT p.id FROM prefixes AS p WHERE p.space_key = space AND p.parent_prefix_id IS NULL AND p.cidr > network AND p.cidr <= highest;
      RETURN;
    END IF;
    RETURN QUERY SELECT p.id FROM prefixes AS p
      WHERE p.space_key = space AND p.parent_prefix_id = ANY (ancestors) AND p.cidr > network AND p.cidr <= highest;
  END $$;
`;

const CONSTRAINTS = `
  DROP TRIGGER prefixes_parent ON prefixes;
  DROP TRIGGER ip_ranges_overlap ON ip_ranges;

  CREATE OR REPLACE FUNCTION check_prefix_parent() RETURNS trigger LANGUAGE plpgsql AS $$
  BEGIN
    IF EXISTS (
      SELECT FROM prefixes AS child JOIN prefixes AS parent ON parent.id = child.parent_prefix_id
      WHERE child.id = NEW.id AND NOT (parent.cidr >> child.cidr AND parent.space_key IN (child.space_key, coalesce(shared_space(child.space_key), child.space_key)))
    ) OR EXISTS (
      SELECT FROM prefixes AS parent JOIN prefixes AS child ON child.parent_prefix_id = parent.id
      WHERE parent.id = NEW.id AND TG_OP = 'UPDATE'
        AND NOT (parent.cidr >> child.cidr AND parent.space_key IN (child.space_key, coalesce(shared_space(child.space_key), child.space_key)))
    ) THEN
      RAISE EXCEPTION 'prefix % is not inside its parent', NEW.id USING ERRCODE = 'check_violation';
    END IF;
    RETURN NULL;
  END $$;
  CREATE CONSTRAINT TRIGGER prefixes_parent AFTER INSERT OR UPDATE OF tenant_id, cidr, vrf_id, parent_prefix_id ON prefixes
    DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION check_prefix_parent();

  CREATE OR REPLACE FUNCTION check_range_overlap() RETURNS trigger LANGUAGE plpgsql AS $$
  BEGIN
    IF EXISTS (
      SELECT FROM ip_ranges AS one JOIN ip_ranges AS other ON other.space_key = one.space_key AND other.span && one.span AND other.id <> one.id
      WHERE one.id = NEW.id AND NOT (other.span @> one.span OR one.span @> other.span)
    ) THEN
      RAISE EXCEPTION 'range % partly overlaps another', NEW.id USING ERRCODE = 'exclusion_violation';
    END IF;
    RETURN NULL;
  END $$;
  CREATE CONSTRAINT TRIGGER ip_ranges_overlap AFTER INSERT OR UPDATE OF tenant_id, start_address, end_address, vrf_id ON ip_ranges
    DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION check_range_overlap();
`;

/** Records copy from their VRF whether it is shared, as they copy whether it enforces uniqueness. */
const SHARING = `
  CREATE OR REPLACE FUNCTION copy_vrf_uniqueness() RETURNS trigger LANGUAGE plpgsql AS $$
  DECLARE
    used record;
  BEGIN
    SELECT v.enforce_unique, v.tenant_id INTO used FROM vrfs AS v WHERE v.id = NEW.vrf_id;
    NEW.unique_in_vrf := coalesce(used.enforce_unique, true);
    NEW.in_shared_table := coalesce(used.tenant_id = 'platform', true);
    RETURN NEW;
  END $$;
  CREATE FUNCTION copy_vrf_sharing() RETURNS trigger LANGUAGE plpgsql AS $$
  BEGIN
    NEW.in_shared_table := coalesce((SELECT v.tenant_id = 'platform' FROM vrfs AS v WHERE v.id = NEW.vrf_id), true);
    RETURN NEW;
  END $$;
  CREATE TRIGGER ip_ranges_vrf_sharing BEFORE INSERT OR UPDATE OF vrf_id ON ip_ranges FOR EACH ROW EXECUTE FUNCTION copy_vrf_sharing();

  CREATE OR REPLACE FUNCTION update_vrf_uniqueness() RETURNS trigger LANGUAGE plpgsql AS $$
  BEGIN
    UPDATE prefixes SET unique_in_vrf = NEW.enforce_unique WHERE vrf_id = NEW.id;
    UPDATE ip_addresses SET unique_in_vrf = NEW.enforce_unique WHERE vrf_id = NEW.id;
    RETURN NULL;
  END $$;
  CREATE FUNCTION update_vrf_sharing() RETURNS trigger LANGUAGE plpgsql AS $$
  BEGIN
    ${TABLES.map((table) => `UPDATE ${table} SET in_shared_table = NEW.tenant_id = 'platform' WHERE vrf_id = NEW.id;`).join('\n    ')}
    RETURN NULL;
  END $$;
  CREATE TRIGGER vrfs_sharing AFTER UPDATE OF tenant_id ON vrfs FOR EACH ROW
    WHEN ((OLD.tenant_id = 'platform') <> (NEW.tenant_id = 'platform')) EXECUTE FUNCTION update_vrf_sharing();
`;

/**
 * What a tenant frees in a prefix of the platform deletes the hint of that prefix too. Tenants must
 * not wait for each other there: a hint that is being deleted is skipped, and a search that ends
 * without a result is made again without a hint.
 */
const FREE_HINTS = `
  DELETE FROM free_hints;
  ALTER TABLE free_hints ADD space_key text COLLATE "C" NOT NULL;
  DROP INDEX free_hints_space;
  CREATE INDEX free_hints_space ON free_hints USING gist (space_key, cidr inet_ops);

  CREATE FUNCTION reset_free_hints(space text, network inet, lowest inet) RETURNS void LANGUAGE plpgsql AS $$
  BEGIN
    IF space = shared_space(space) THEN
      DELETE FROM free_hints AS h WHERE h.vrf_key = split_part(space, '/', 1) AND h.cidr && network AND h.next_free > lowest;
      RETURN;
    END IF;
    DELETE FROM free_hints AS h WHERE h.space_key = space AND h.cidr && network AND h.next_free > lowest;
    IF strpos(space, '/') > 0 THEN
      DELETE FROM free_hints AS h USING (
        SELECT f.prefix_id, f.length FROM free_hints AS f WHERE f.space_key = shared_space(space) AND f.cidr && network AND f.next_free > lowest
        FOR UPDATE SKIP LOCKED
      ) AS stale WHERE h.prefix_id = stale.prefix_id AND h.length = stale.length;
    END IF;
  END $$;
  CREATE OR REPLACE FUNCTION reset_free_hints_of_prefix() RETURNS trigger LANGUAGE plpgsql AS $$
  BEGIN
    IF TG_OP = 'UPDATE' THEN
      IF NEW.cidr = OLD.cidr AND NEW.space_key = OLD.space_key THEN RETURN NULL; END IF;
      DELETE FROM free_hints WHERE prefix_id = OLD.id;
    END IF;
    PERFORM reset_free_hints(OLD.space_key, OLD.cidr, '0.0.0.0');
    RETURN NULL;
  END $$;
  CREATE OR REPLACE FUNCTION reset_free_hints_of_address() RETURNS trigger LANGUAGE plpgsql AS $$
  BEGIN
    IF TG_OP = 'UPDATE' THEN
      IF NEW.host = OLD.host AND NEW.space_key = OLD.space_key THEN RETURN NULL; END IF;
    END IF;
    PERFORM reset_free_hints(OLD.space_key, OLD.host, OLD.host);
    RETURN NULL;
  END $$;
  CREATE OR REPLACE FUNCTION reset_free_hints_of_range() RETURNS trigger LANGUAGE plpgsql AS $$
  BEGIN
    IF TG_OP = 'UPDATE' THEN
      IF NEW.span = OLD.span AND NEW.space_key = OLD.space_key THEN RETURN NULL; END IF;
    END IF;
    PERFORM reset_free_hints(OLD.space_key, inet_merge(OLD.start_address, OLD.end_address), OLD.start_address);
    RETURN NULL;
  END $$;
  DROP TRIGGER prefixes_free_hints ON prefixes;
  DROP TRIGGER ip_addresses_free_hints ON ip_addresses;
  DROP TRIGGER ip_ranges_free_hints ON ip_ranges;
  CREATE TRIGGER prefixes_free_hints AFTER DELETE OR UPDATE OF tenant_id, cidr, vrf_id ON prefixes FOR EACH ROW EXECUTE FUNCTION reset_free_hints_of_prefix();
  CREATE TRIGGER ip_addresses_free_hints AFTER DELETE OR UPDATE OF tenant_id, address, vrf_id ON ip_addresses FOR EACH ROW EXECUTE FUNCTION reset_free_hints_of_address();
  CREATE TRIGGER ip_ranges_free_hints AFTER DELETE OR UPDATE OF tenant_id, start_address, end_address, vrf_id ON ip_ranges FOR EACH ROW EXECUTE FUNCTION reset_free_hints_of_range();
`;

/** As in 0010, with the indexes of one tenant's records. */
const SCOPES = `
  CREATE OR REPLACE FUNCTION update_scopes_in(vrf text, tenant text, network cidr) RETURNS void LANGUAGE plpgsql AS $$
  DECLARE
    lowest inet := host(network)::inet;
    highest inet := set_masklen(broadcast(network), CASE family(network) WHEN 4 THEN 32 ELSE 128 END);
    space text := space_of(vrf, tenant);
  BEGIN
    UPDATE prefixes AS t SET scope_site_id = n.site
      FROM (SELECT p.id, site_of_space(vrf, tenant, p.cidr, p.id) AS site FROM prefixes AS p
        WHERE p.space_key = space AND p.cidr >= network AND p.cidr <= highest AND p.tenant_id = tenant AND p.site_id IS NULL) AS n
      WHERE t.id = n.id AND t.scope_site_id IS DISTINCT FROM n.site;
    UPDATE ip_ranges AS t SET scope_site_id = n.site
      FROM (SELECT r.id, site_of_space(vrf, tenant, inet_merge(r.start_address, r.end_address), '') AS site FROM ip_ranges AS r
        WHERE r.space_key = space AND r.span && inet_range(lowest, highest, '[]') AND r.tenant_id = tenant) AS n
      WHERE t.id = n.id AND t.scope_site_id IS DISTINCT FROM n.site;
    UPDATE ip_addresses AS t SET scope_site_id = n.site
      FROM (SELECT a.id, site_of_space(vrf, tenant, a.host, '') AS site FROM ip_addresses AS a
        WHERE a.space_key = space AND a.host BETWEEN lowest AND highest AND a.tenant_id = tenant) AS n
      WHERE t.id = n.id AND t.scope_site_id IS DISTINCT FROM n.site;
  END $$;
`;

/**
 * The parent of every prefix, from its network and space alone. PostgreSQL sorts a network before
 * those that it contains, so that a pass with a stack of the containing networks is enough: one over
 * each space, and one that finds the prefixes of the platform around those of tenants.
 */
const RECALCULATE = `
  CREATE FUNCTION parents_in_own_space() RETURNS TABLE (child text, parent text, length integer) LANGUAGE plpgsql ROWS 1000000 AS $$
  DECLARE
    found record;
    current_space text;
    ids text[];
    nets cidr[];
    depth integer := 0;
  BEGIN
    FOR found IN SELECT p.id, p.cidr, p.space_key FROM prefixes AS p ORDER BY p.space_key, p.cidr, p.id LOOP
      IF found.space_key IS DISTINCT FROM current_space THEN
        current_space := found.space_key;
        depth := 0;
      END IF;
      WHILE depth > 0 AND NOT nets[depth] >> found.cidr LOOP depth := depth - 1; END LOOP;
      child := found.id;
      parent := CASE WHEN depth > 0 THEN ids[depth] END;
      length := CASE WHEN depth > 0 THEN masklen(nets[depth]) ELSE 0 END;
      RETURN NEXT;
      depth := depth + 1;
      ids[depth] := found.id;
      nets[depth] := found.cidr;
    END LOOP;
  END $$;

  CREATE FUNCTION parents_of_the_platform() RETURNS TABLE (child text, parent text, length integer) LANGUAGE plpgsql ROWS 1000000 AS $$
  DECLARE
    found record;
    current_vrf text;
    ids text[];
    nets cidr[];
    depth integer := 0;
    at integer;
  BEGIN
    FOR found IN SELECT p.id, p.cidr, p.vrf_key, p.tenant_id = 'platform' AS is_shared FROM prefixes AS p WHERE p.in_shared_table
      ORDER BY p.vrf_key, p.cidr, p.tenant_id <> 'platform', p.id
    LOOP
      IF found.vrf_key IS DISTINCT FROM current_vrf THEN
        current_vrf := found.vrf_key;
        depth := 0;
      END IF;
      WHILE depth > 0 AND NOT nets[depth] >>= found.cidr LOOP depth := depth - 1; END LOOP;
      IF found.is_shared THEN
        depth := depth + 1;
        ids[depth] := found.id;
        nets[depth] := found.cidr;
      ELSE
        at := depth;
        WHILE at > 0 AND nets[at] = found.cidr LOOP at := at - 1; END LOOP;
        IF at > 0 THEN
          child := found.id;
          parent := ids[at];
          length := masklen(nets[at]);
          RETURN NEXT;
        END IF;
      END IF;
    END LOOP;
  END $$;

  CREATE FUNCTION recalculate_prefix_parents() RETURNS void LANGUAGE plpgsql AS $$
  BEGIN
    ${TABLES.map(
      (table) => `UPDATE ${table} AS t SET in_shared_table = v.tenant_id = 'platform' FROM vrfs AS v
      WHERE v.id = t.vrf_id AND t.in_shared_table <> (v.tenant_id = 'platform');`,
    ).join('\n    ')}
    UPDATE prefixes AS t SET parent_prefix_id = wanted.parent
      FROM (SELECT own.child, CASE WHEN shared.length > own.length THEN shared.parent ELSE own.parent END AS parent
        FROM parents_in_own_space() AS own LEFT JOIN parents_of_the_platform() AS shared ON shared.child = own.child) AS wanted
        LEFT JOIN prefixes AS next ON next.id = wanted.parent
      WHERE t.id = wanted.child AND t.parent_prefix_id IS DISTINCT FROM wanted.parent
        -- Of several prefixes with the same network, either may be the parent.
        AND NOT EXISTS (SELECT FROM prefixes AS present
          WHERE present.id = t.parent_prefix_id AND present.space_key = next.space_key AND present.cidr = next.cidr);
  END $$;
`;

/** What 0006 and 0010 created, with one tree in each VRF. */
const DOWN = `
  DROP TRIGGER prefixes_parent ON prefixes;
  DROP TRIGGER ip_ranges_overlap ON ip_ranges;
  DROP TRIGGER prefixes_free_hints ON prefixes;
  DROP TRIGGER ip_addresses_free_hints ON ip_addresses;
  DROP TRIGGER ip_ranges_free_hints ON ip_ranges;
  DROP FUNCTION copy_vrf_sharing, update_vrf_sharing, reset_free_hints, recalculate_prefix_parents, parents_of_the_platform,
    parents_in_own_space, prefixes_inside, prefixes_around, supernets, shared_space, space_of CASCADE;
  DELETE FROM free_hints;
  ALTER TABLE free_hints DROP space_key;
  ALTER TABLE prefixes DROP space_key, DROP in_shared_table;
  ALTER TABLE ip_ranges DROP space_key, DROP in_shared_table;
  ALTER TABLE ip_addresses DROP CONSTRAINT ip_addresses_shared, DROP space_key, DROP in_shared_table;
  CREATE UNIQUE INDEX prefixes_cidr ON prefixes (vrf_key, cidr) WHERE unique_in_vrf;
  CREATE INDEX ON prefixes (vrf_key, cidr);
  CREATE INDEX ON prefixes (vrf_key, parent_prefix_id, cidr);
  CREATE UNIQUE INDEX ip_addresses_host ON ip_addresses (vrf_key, host) WHERE unique_in_vrf AND shared = 0;
  ALTER TABLE ip_addresses ADD CONSTRAINT ip_addresses_shared
    EXCLUDE USING gist (vrf_key WITH =, host inet_ops WITH =, shared WITH <>) WHERE (unique_in_vrf);
  ALTER TABLE ip_ranges ADD UNIQUE (vrf_key, start_address, end_address);
  CREATE INDEX free_hints_space ON free_hints USING gist (vrf_key, cidr inet_ops);
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
  CREATE OR REPLACE FUNCTION check_prefix_parent() RETURNS trigger LANGUAGE plpgsql AS $$
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
  CREATE OR REPLACE FUNCTION check_range_overlap() RETURNS trigger LANGUAGE plpgsql AS $$
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
  CREATE OR REPLACE FUNCTION copy_vrf_uniqueness() RETURNS trigger LANGUAGE plpgsql AS $$
  BEGIN
    NEW.unique_in_vrf := coalesce((SELECT enforce_unique FROM vrfs WHERE id = NEW.vrf_id), true);
    RETURN NEW;
  END $$;
  CREATE OR REPLACE FUNCTION reset_free_hints_of_prefix() RETURNS trigger LANGUAGE plpgsql AS $$
  BEGIN
    IF TG_OP = 'UPDATE' THEN
      IF NEW.cidr = OLD.cidr AND NEW.vrf_key = OLD.vrf_key THEN RETURN NULL; END IF;
      DELETE FROM free_hints WHERE prefix_id = OLD.id;
    END IF;
    DELETE FROM free_hints WHERE vrf_key = OLD.vrf_key AND cidr && OLD.cidr;
    RETURN NULL;
  END $$;
  CREATE OR REPLACE FUNCTION reset_free_hints_of_address() RETURNS trigger LANGUAGE plpgsql AS $$
  BEGIN
    IF TG_OP = 'UPDATE' THEN
      IF NEW.host = OLD.host AND NEW.vrf_key = OLD.vrf_key THEN RETURN NULL; END IF;
    END IF;
    DELETE FROM free_hints WHERE vrf_key = OLD.vrf_key AND cidr >>= OLD.host AND next_free > OLD.host;
    RETURN NULL;
  END $$;
  CREATE OR REPLACE FUNCTION reset_free_hints_of_range() RETURNS trigger LANGUAGE plpgsql AS $$
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
  CREATE OR REPLACE FUNCTION update_scopes_in(vrf text, tenant text, network cidr) RETURNS void LANGUAGE plpgsql AS $$
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
`;

/** The parent of every prefix in the one tree of its VRF, found as `parents_in_own_space` does. */
const RECALCULATE_DOWN = `
  DO $$
  DECLARE
    found record;
    current_vrf text;
    ids text[];
    nets cidr[];
    depth integer := 0;
  BEGIN
    FOR found IN
      SELECT c.id, c.cidr, c.vrf_key, c.parent_prefix_id, p.cidr AS parent_cidr
      FROM prefixes AS c LEFT JOIN prefixes AS p ON p.id = c.parent_prefix_id
      ORDER BY c.vrf_key, c.cidr, c.id
    LOOP
      IF found.vrf_key IS DISTINCT FROM current_vrf THEN
        current_vrf := found.vrf_key;
        depth := 0;
      END IF;
      WHILE depth > 0 AND NOT nets[depth] >> found.cidr LOOP depth := depth - 1; END LOOP;
      -- Of several prefixes with the same network, either may be the parent.
      IF found.parent_cidr IS DISTINCT FROM (CASE WHEN depth > 0 THEN nets[depth] END) THEN
        UPDATE prefixes SET parent_prefix_id = CASE WHEN depth > 0 THEN ids[depth] END WHERE id = found.id;
      END IF;
      depth := depth + 1;
      ids[depth] := found.id;
      nets[depth] := found.cidr;
    END LOOP;
  END $$;
`;

/** Fails when tenants have the same network or address in a shared table, which 0006 does not allow. */
export async function down(knex: Knex): Promise<void> {
  await knex.raw(DOWN);
  await knex.raw(RECALCULATE_DOWN);
  await knex.raw('SET CONSTRAINTS ALL IMMEDIATE; SET CONSTRAINTS ALL DEFERRED;');
}
