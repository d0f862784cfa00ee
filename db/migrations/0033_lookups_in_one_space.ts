import type { Knex } from 'knex';

/**
 * Lookups of the last prefix up to a network read one address space only. PostgreSQL could also answer
 * them from the index on the networks of all spaces, and did so on a recently filled table, where it
 * then read the same networks of all other VRFs.
 *
 * What tenants have in shared tables has an index of its own, so that one lookup shows that a prefix of
 * the platform has nothing of theirs around it or inside.
 *
 * A new prefix without a parent needs no check of its parent.
 */
export async function up(knex: Knex): Promise<void> {
  await knex.raw(`
    CREATE INDEX prefixes_of_tenants ON prefixes (vrf_key, cidr) WHERE in_shared_table AND tenant_id <> 'platform';
    DROP TRIGGER prefixes_parent ON prefixes;
    CREATE CONSTRAINT TRIGGER prefixes_parent AFTER UPDATE OF tenant_id, cidr, vrf_id, parent_prefix_id ON prefixes
      DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION check_prefix_parent();
    CREATE CONSTRAINT TRIGGER prefixes_parent_of_new AFTER INSERT ON prefixes
      DEFERRABLE INITIALLY DEFERRED FOR EACH ROW WHEN (NEW.parent_prefix_id IS NOT NULL) EXECUTE FUNCTION check_prefix_parent();
  `);
  await knex.raw(
    prefixesAround('(p.space_key, p.cidr) <= (space, bound) AND p.space_key >= space'),
  );
}

/** As in 0013, with another condition for the last prefix of `space` up to `bound`. */
const prefixesAround = (precedes: string): string => `
  CREATE OR REPLACE FUNCTION prefixes_around(space text, network inet) RETURNS SETOF cidr LANGUAGE plpgsql STABLE AS $$
  DECLARE
    bound inet := network;
    found record;
    last cidr;
  BEGIN
    LOOP
      SELECT p.cidr, p.parent_prefix_id, p.space_key INTO found FROM prefixes AS p
        WHERE ${precedes} ORDER BY p.space_key DESC, p.cidr DESC LIMIT 1;
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
`;

export async function down(knex: Knex): Promise<void> {
  await knex.raw(prefixesAround('p.space_key = space AND p.cidr <= bound'));
  await knex.raw(`
    DROP TRIGGER prefixes_parent ON prefixes;
    DROP TRIGGER prefixes_parent_of_new ON prefixes;
    CREATE CONSTRAINT TRIGGER prefixes_parent AFTER INSERT OR UPDATE OF tenant_id, cidr, vrf_id, parent_prefix_id ON prefixes
      DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION check_prefix_parent();
    DROP INDEX prefixes_of_tenants;
  `);
}
