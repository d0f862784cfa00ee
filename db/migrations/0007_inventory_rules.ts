import type { Knex } from 'knex';

/**
 * What holds between the rows of the inventory, whatever the planner says: trees do not circle, a prefix lies in its
 * parent, ranges lie apart or one in another, devices fit their racks, an interface has one cable. Where a rule is about
 * rows that change together, it is checked at the end of the transaction.
 */
export async function up(knex: Knex): Promise<void> {
  for (const rules of [TREES, ADDRESS_SPACE, RACK_SPACE, CABLE_ENDS]) await knex.raw(rules);
}

const TREES = `
  CREATE FUNCTION must_not_circle() RETURNS trigger LANGUAGE plpgsql AS $$
  DECLARE
    above text := NEW.parent_id;
    steps integer := 0;
  BEGIN
    WHILE above IS NOT NULL LOOP
      steps := steps + 1;
      IF above = NEW.id OR steps > 100 THEN
        RAISE EXCEPTION '% is above itself', NEW.id USING ERRCODE = 'check_violation';
      END IF;
      EXECUTE format('SELECT parent_id FROM %I WHERE id = $1', TG_TABLE_NAME) INTO above USING above;
    END LOOP;
    RETURN NULL;
  END $$;
  CREATE CONSTRAINT TRIGGER regions_tree AFTER INSERT OR UPDATE OF parent_id ON regions DEFERRABLE INITIALLY DEFERRED
    FOR EACH ROW WHEN (NEW.parent_id IS NOT NULL) EXECUTE FUNCTION must_not_circle();
  CREATE CONSTRAINT TRIGGER locations_tree AFTER INSERT OR UPDATE OF parent_id ON locations DEFERRABLE INITIALLY DEFERRED
    FOR EACH ROW WHEN (NEW.parent_id IS NOT NULL) EXECUTE FUNCTION must_not_circle();
`;

const ADDRESS_SPACE = `
  CREATE UNIQUE INDEX prefixes_cidr ON prefixes (vrf_key, cidr) WHERE unique_in_vrf;
  CREATE INDEX ip_ranges_space ON ip_ranges USING gist (vrf_key, span);
  CREATE UNIQUE INDEX ip_addresses_host ON ip_addresses (vrf_key, host) WHERE unique_in_vrf AND shared = 0;
  ALTER TABLE ip_addresses ADD CONSTRAINT ip_addresses_shared
    EXCLUDE USING gist (vrf_key WITH =, host inet_ops WITH =, shared WITH <>) WHERE (unique_in_vrf);

  -- Networks sort before what they contain: the one right before a network has all that contain it above itself.
  CREATE FUNCTION closest_prefix(vrf text, network cidr) RETURNS cidr LANGUAGE plpgsql STABLE AS $$
  DECLARE
    near record;
  BEGIN
    SELECT cidr, parent_prefix_id INTO near FROM prefixes WHERE vrf_key = vrf AND cidr < network ORDER BY vrf_key DESC, cidr DESC LIMIT 1;
    WHILE near.cidr IS NOT NULL AND NOT near.cidr >> network LOOP
      SELECT cidr, parent_prefix_id INTO near FROM prefixes WHERE id = near.parent_prefix_id;
    END LOOP;
    RETURN near.cidr;
  END $$;

  -- The outermost networks inside one, whether it is there or not: children of the closest around it, a range of the index.
  CREATE FUNCTION prefixes_inside(vrf text, network cidr) RETURNS SETOF text LANGUAGE plpgsql STABLE AS $$
  DECLARE
    around cidr := closest_prefix(vrf, network);
    highest inet := set_masklen(broadcast(network), CASE family(network) WHEN 4 THEN 32 ELSE 128 END);
    above text;
  BEGIN
    IF around IS NULL THEN
      RETURN QUERY SELECT id FROM prefixes WHERE vrf_key = vrf AND parent_prefix_id IS NULL AND cidr > network AND cidr <= highest;
    END IF;
    FOR above IN SELECT id FROM prefixes WHERE vrf_key = vrf AND cidr = around LOOP
      RETURN QUERY SELECT id FROM prefixes WHERE vrf_key = vrf AND parent_prefix_id = above AND cidr > network AND cidr <= highest;
    END LOOP;
  END $$;

  CREATE FUNCTION prefix_in_parent() RETURNS trigger LANGUAGE plpgsql AS $$
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
    DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION prefix_in_parent();

  CREATE FUNCTION ip_range_whole() RETURNS trigger LANGUAGE plpgsql AS $$
  BEGIN
    IF EXISTS (
      SELECT FROM ip_ranges AS one JOIN ip_ranges AS other ON other.vrf_key = one.vrf_key AND other.span && one.span AND other.id <> one.id
      WHERE one.id = NEW.id AND NOT (other.span @> one.span OR one.span @> other.span)
    ) THEN
      RAISE EXCEPTION 'range % partly overlaps another', NEW.id USING ERRCODE = 'exclusion_violation';
    END IF;
    RETURN NULL;
  END $$;
  CREATE CONSTRAINT TRIGGER ip_ranges_whole AFTER INSERT OR UPDATE OF start_address, end_address, vrf_id ON ip_ranges
    DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION ip_range_whole();

  CREATE FUNCTION flag_of_vrf() RETURNS trigger LANGUAGE plpgsql AS $$
  BEGIN
    NEW.unique_in_vrf := coalesce((SELECT enforce_unique FROM vrfs WHERE id = NEW.vrf_id), true);
    RETURN NEW;
  END $$;
  CREATE TRIGGER prefixes_flag BEFORE INSERT OR UPDATE OF vrf_id ON prefixes FOR EACH ROW WHEN (NEW.vrf_id IS NOT NULL) EXECUTE FUNCTION flag_of_vrf();
  CREATE TRIGGER prefixes_global BEFORE UPDATE OF vrf_id ON prefixes FOR EACH ROW WHEN (NEW.vrf_id IS NULL) EXECUTE FUNCTION flag_of_vrf();
  CREATE TRIGGER ip_addresses_flag BEFORE INSERT OR UPDATE OF vrf_id ON ip_addresses FOR EACH ROW WHEN (NEW.vrf_id IS NOT NULL) EXECUTE FUNCTION flag_of_vrf();
  CREATE TRIGGER ip_addresses_global BEFORE UPDATE OF vrf_id ON ip_addresses FOR EACH ROW WHEN (NEW.vrf_id IS NULL) EXECUTE FUNCTION flag_of_vrf();
  CREATE FUNCTION vrf_flag_changed() RETURNS trigger LANGUAGE plpgsql AS $$
  BEGIN
    UPDATE prefixes SET unique_in_vrf = NEW.enforce_unique WHERE vrf_key = NEW.id;
    UPDATE ip_addresses SET unique_in_vrf = NEW.enforce_unique WHERE vrf_key = NEW.id;
    RETURN NULL;
  END $$;
  CREATE TRIGGER vrfs_flag AFTER UPDATE OF enforce_unique ON vrfs FOR EACH ROW
    WHEN (OLD.enforce_unique <> NEW.enforce_unique) EXECUTE FUNCTION vrf_flag_changed();

  -- Below 'next_free' a prefix has no room for a block of this length. What frees space sets it back.
  CREATE TABLE free_hints (
    prefix_id text COLLATE "C" NOT NULL REFERENCES prefixes (id) ON DELETE CASCADE,
    length    integer NOT NULL,
    vrf_key   text COLLATE "C" NOT NULL,
    cidr      cidr NOT NULL,
    next_free inet NOT NULL,
    PRIMARY KEY (prefix_id, length)
  );
  CREATE INDEX free_hints_space ON free_hints USING gist (vrf_key, cidr inet_ops);
  CREATE FUNCTION prefix_space_freed() RETURNS trigger LANGUAGE plpgsql AS $$
  BEGIN
    IF TG_OP = 'UPDATE' THEN
      IF NEW.cidr = OLD.cidr AND NEW.vrf_key = OLD.vrf_key THEN RETURN NULL; END IF;
      DELETE FROM free_hints WHERE prefix_id = OLD.id;
    END IF;
    DELETE FROM free_hints WHERE vrf_key = OLD.vrf_key AND cidr && OLD.cidr;
    RETURN NULL;
  END $$;
  CREATE FUNCTION address_space_freed() RETURNS trigger LANGUAGE plpgsql AS $$
  BEGIN
    IF TG_OP = 'UPDATE' THEN
      IF NEW.host = OLD.host AND NEW.vrf_key = OLD.vrf_key THEN RETURN NULL; END IF;
    END IF;
    DELETE FROM free_hints WHERE vrf_key = OLD.vrf_key AND cidr >>= OLD.host AND next_free > OLD.host;
    RETURN NULL;
  END $$;
  CREATE FUNCTION range_space_freed() RETURNS trigger LANGUAGE plpgsql AS $$
  BEGIN
    IF TG_OP = 'UPDATE' THEN
      IF NEW.span = OLD.span AND NEW.vrf_key = OLD.vrf_key THEN RETURN NULL; END IF;
    END IF;
    DELETE FROM free_hints WHERE vrf_key = OLD.vrf_key AND next_free > OLD.start_address
      AND inet_range(host(cidr)::inet, host(broadcast(cidr))::inet, '[]') && OLD.span;
    RETURN NULL;
  END $$;
  CREATE TRIGGER prefixes_freed AFTER DELETE OR UPDATE OF cidr, vrf_id ON prefixes FOR EACH ROW EXECUTE FUNCTION prefix_space_freed();
  CREATE TRIGGER ip_addresses_freed AFTER DELETE OR UPDATE OF address, vrf_id ON ip_addresses FOR EACH ROW EXECUTE FUNCTION address_space_freed();
  CREATE TRIGGER ip_ranges_freed AFTER DELETE OR UPDATE OF start_address, end_address, vrf_id ON ip_ranges FOR EACH ROW EXECUTE FUNCTION range_space_freed();
`;

const RACK_SPACE = `
  CREATE FUNCTION device_units() RETURNS trigger LANGUAGE plpgsql AS $$
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
    FOR EACH ROW EXECUTE FUNCTION device_units();
  CREATE FUNCTION device_units_again() RETURNS trigger LANGUAGE plpgsql AS $$
  BEGIN
    IF TG_TABLE_NAME = 'racks' THEN
      UPDATE devices SET position = position WHERE rack_id = NEW.id AND position IS NOT NULL;
    ELSE
      UPDATE devices SET position = position WHERE device_type_id = NEW.id AND position IS NOT NULL;
    END IF;
    RETURN NULL;
  END $$;
  CREATE TRIGGER device_types_units AFTER UPDATE OF u_height, full_depth ON device_types FOR EACH ROW
    WHEN (OLD.u_height <> NEW.u_height OR OLD.full_depth <> NEW.full_depth) EXECUTE FUNCTION device_units_again();
  CREATE TRIGGER racks_units AFTER UPDATE OF u_height ON racks FOR EACH ROW
    WHEN (NEW.u_height < OLD.u_height) EXECUTE FUNCTION device_units_again();
`;

/** One row for each end of a cable: its key is what keeps an interface from having two. */
const CABLE_ENDS = `
  CREATE TABLE cable_ends (
    interface_id text COLLATE "C" PRIMARY KEY,
    cable_id     text COLLATE "C" NOT NULL REFERENCES cables (id) ON DELETE CASCADE
  );
  CREATE INDEX cable_ends_cable ON cable_ends (cable_id);
  CREATE FUNCTION cable_takes_ends() RETURNS trigger LANGUAGE plpgsql AS $$
  BEGIN
    DELETE FROM cable_ends WHERE cable_id = NEW.id;
    INSERT INTO cable_ends (interface_id, cable_id) VALUES (NEW.a_interface_id, NEW.id), (NEW.b_interface_id, NEW.id);
    RETURN NULL;
  END $$;
  CREATE TRIGGER cables_ends AFTER INSERT OR UPDATE OF a_interface_id, b_interface_id ON cables FOR EACH ROW EXECUTE FUNCTION cable_takes_ends();
`;

export async function down(knex: Knex): Promise<void> {
  await knex.raw(`
    DROP TABLE cable_ends, free_hints;
    DROP TRIGGER devices_units ON devices;
    DROP FUNCTION must_not_circle, prefix_in_parent, ip_range_whole, flag_of_vrf, vrf_flag_changed, prefix_space_freed, address_space_freed, range_space_freed,
      device_units, device_units_again, cable_takes_ends, prefixes_inside, closest_prefix CASCADE;
    ALTER TABLE ip_addresses DROP CONSTRAINT ip_addresses_shared;
    DROP INDEX prefixes_cidr, ip_ranges_space, ip_addresses_host;
  `);
}
