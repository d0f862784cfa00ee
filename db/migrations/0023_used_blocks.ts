import type { Knex } from 'knex';

/**
 * The number of used addresses in blocks of 256, 65,536 and 16,777,216 addresses: of a block of the
 * smallest size the addresses, of a larger one the full blocks of the next smaller size. The search
 * for a free address skips full blocks instead of reading their addresses
 * (docs/adr/0039-a-busy-address-space-shares-commits.md).
 *
 * Only addresses are counted that no second record can have: not those with a shared role, nor those
 * in VRFs that allow duplicates. A block that such addresses fill is read instead.
 */
export async function up(knex: Knex): Promise<void> {
  await knex.raw(TABLE);
  await knex.raw(COUNTING);
  await knex.raw(SEARCH);
}

const TABLE = `
  CREATE TABLE used_blocks (
    vrf_key   text COLLATE "C" NOT NULL,
    block     cidr NOT NULL,
    space_key text COLLATE "C" NOT NULL,
    used      integer NOT NULL,
    PRIMARY KEY (vrf_key, block, space_key)
  ) WITH (fillfactor = 50);
`;

const BLOCK_OF = (host: string, bits: number) =>
  `network(set_masklen(${host}, CASE family(${host}) WHEN 4 THEN 32 ELSE 128 END - ${bits}))`;
const IS_COUNTED = (row: string) => `(${row}.unique_in_vrf AND ${row}.shared = 0)`;

/** A statement that inserts or deletes many addresses changes the count of each block once. */
const COUNTING = `
  -- Adds to the count of a block. When it becomes full, or is not any more, the next larger one changes too.
  CREATE FUNCTION count_used_block(vrf text, space text, network cidr, change integer) RETURNS void LANGUAGE plpgsql AS $$
  DECLARE
    current cidr := network;
    step integer := change;
    now_used integer;
  BEGIN
    LOOP
      INSERT INTO used_blocks AS u (vrf_key, block, space_key, used) VALUES (vrf, current, space, step)
        ON CONFLICT (vrf_key, block, space_key) DO UPDATE SET used = u.used + excluded.used
        RETURNING u.used INTO now_used;
      IF now_used = 0 THEN DELETE FROM used_blocks AS u WHERE u.vrf_key = vrf AND u.block = current AND u.space_key = space; END IF;
      EXIT WHEN CASE family(current) WHEN 4 THEN 32 ELSE 128 END - masklen(current) >= 24
        OR (now_used = 256) = (now_used - step = 256);
      step := CASE WHEN now_used = 256 THEN 1 ELSE -1 END;
      current := network(set_masklen(current::inet, masklen(current) - 8));
    END LOOP;
  END $$;

  CREATE FUNCTION count_used_rows() RETURNS trigger LANGUAGE plpgsql AS $$
  DECLARE
    each record;
  BEGIN
    FOR each IN
      SELECT r.vrf_key, r.space_key, ${BLOCK_OF('r.host', 8)} AS block, count(*)::integer AS rows FROM counted_rows AS r
      WHERE ${IS_COUNTED('r')} GROUP BY 1, 2, 3 ORDER BY 1, 3, 2
    LOOP
      PERFORM count_used_block(each.vrf_key, each.space_key, each.block, CASE TG_OP WHEN 'INSERT' THEN each.rows ELSE -each.rows END);
    END LOOP;
    RETURN NULL;
  END $$;
  CREATE FUNCTION count_used_row() RETURNS trigger LANGUAGE plpgsql AS $$
  BEGIN
    IF ${IS_COUNTED('OLD')} THEN PERFORM count_used_block(OLD.vrf_key, OLD.space_key, ${BLOCK_OF('OLD.host', 8)}, -1); END IF;
    IF ${IS_COUNTED('NEW')} THEN PERFORM count_used_block(NEW.vrf_key, NEW.space_key, ${BLOCK_OF('NEW.host', 8)}, 1); END IF;
    RETURN NULL;
  END $$;
  CREATE TRIGGER ip_addresses_used_inserted AFTER INSERT ON ip_addresses REFERENCING NEW TABLE AS counted_rows
    FOR EACH STATEMENT EXECUTE FUNCTION count_used_rows();
  CREATE TRIGGER ip_addresses_used_deleted AFTER DELETE ON ip_addresses REFERENCING OLD TABLE AS counted_rows
    FOR EACH STATEMENT EXECUTE FUNCTION count_used_rows();
  CREATE TRIGGER ip_addresses_used_updated AFTER UPDATE ON ip_addresses FOR EACH ROW
    WHEN (OLD.host <> NEW.host OR OLD.space_key <> NEW.space_key OR ${IS_COUNTED('OLD')} <> ${IS_COUNTED('NEW')})
    EXECUTE FUNCTION count_used_row();

  -- Counts all addresses again, after a restore, during which the triggers do not run.
  CREATE FUNCTION recount_used_blocks() RETURNS void LANGUAGE plpgsql AS $$
  BEGIN
    DELETE FROM used_blocks;
    INSERT INTO used_blocks (vrf_key, space_key, block, used)
      SELECT a.vrf_key, a.space_key, ${BLOCK_OF('a.host', 8)}, count(*) FROM ip_addresses AS a WHERE ${IS_COUNTED('a')} GROUP BY 1, 2, 3;
    FOR larger IN 2..3 LOOP
      INSERT INTO used_blocks (vrf_key, space_key, block, used)
        SELECT u.vrf_key, u.space_key, network(set_masklen(u.block::inet, masklen(u.block) - 8)), count(*) FROM used_blocks AS u
        WHERE u.used = 256 AND masklen(u.block) = CASE family(u.block) WHEN 4 THEN 32 ELSE 128 END - 8 * (larger - 1) GROUP BY 1, 2, 3;
    END LOOP;
  END $$;
  SELECT recount_used_blocks();
`;

export const SEARCH = `
  -- The first address from 'first' that is not in a full block; null when all up to 'last' are. A block is full
  -- when the addresses of one space fill it: of 'space', or of any in the VRF when that is null.
  CREATE FUNCTION skip_used_blocks(vrf text, space text, first inet, last inet) RETURNS inet LANGUAGE plpgsql STABLE AS $$
  DECLARE
    bits integer := CASE family(first) WHEN 4 THEN 32 ELSE 128 END;
    candidate inet := first;
    size integer;
    containing cidr;
    skips boolean := true;
  BEGIN
    WHILE skips LOOP
      skips := false;
      -- After a skip, only a block that starts there can be full beyond what is known.
      FOREACH size IN ARRAY ARRAY[24, 16, 8] LOOP
        containing := network(set_masklen(candidate, bits - size));
        CONTINUE WHEN candidate <> first AND host(containing)::inet <> candidate;
        IF EXISTS (SELECT FROM used_blocks AS u WHERE u.vrf_key = vrf AND u.block = containing AND u.used = 256
          AND (space IS NULL OR u.space_key = space)) THEN
          IF set_masklen(broadcast(containing), bits) >= last THEN RETURN NULL; END IF;
          candidate := set_masklen(broadcast(containing), bits) + 1;
          skips := true;
          EXIT;
        END IF;
      END LOOP;
    END LOOP;
    RETURN candidate;
  END $$;
`;

export const down = async (knex: Knex): Promise<void> =>
  void (await knex.raw(`
    DROP FUNCTION count_used_rows, count_used_row CASCADE;
    DROP FUNCTION count_used_block, recount_used_blocks, skip_used_blocks;
    DROP TABLE used_blocks;
  `));
