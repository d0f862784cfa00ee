import type { Knex } from 'knex';

/**
 * What a plan needs to know about the surroundings of a network, in one call: a plan asks for it with
 * every prefix, range and address that it writes.
 */
export async function up(knex: Knex): Promise<void> {
  await knex.raw(`
    -- The prefixes that contain or equal a network, in its space and in the one that it shares. Of a network
    -- that can contain others ('is_wide') also the outermost prefixes inside it, and around a network of the
    -- platform those of tenants. 'is_near': equal to it, or the smallest that contains it in one of the spaces.
    CREATE FUNCTION prefixes_near(vrf text, tenant text, network cidr, is_wide boolean)
    RETURNS TABLE (id text, is_near boolean) LANGUAGE plpgsql STABLE ROWS 10 AS $$
    DECLARE
      own text := space_of(vrf, tenant);
      shared text := shared_space(own);
      around cidr[] := ARRAY(SELECT prefixes_around(own, network));
      container cidr := CASE WHEN around[1] = network THEN around[2] ELSE around[1] END;
      shared_around cidr[];
      shared_container cidr;
      highest inet := set_masklen(broadcast(network), CASE family(network) WHEN 4 THEN 32 ELSE 128 END);
      ancestors text[];
      above text[];
    BEGIN
      RETURN QUERY SELECT p.id, p.cidr IN (network, container) IS TRUE FROM prefixes AS p
        WHERE p.space_key = own AND p.cidr = ANY (around);
      IF own <> shared THEN
        shared_around := ARRAY(SELECT prefixes_around(shared, network));
        shared_container := CASE WHEN shared_around[1] = network THEN shared_around[2] ELSE shared_around[1] END;
        RETURN QUERY SELECT p.id, p.cidr IN (network, shared_container) IS TRUE FROM prefixes AS p
          WHERE p.space_key = shared AND p.cidr = ANY (shared_around);
      END IF;
      IF NOT is_wide THEN RETURN; END IF;

      -- A prefix of the platform becomes the parent of what any tenant has directly inside it, also where a
      -- larger prefix of that tenant is the parent. In most tables of the platform no tenant has any.
      IF own = shared AND (
        EXISTS (SELECT FROM prefixes AS p WHERE p.space_key > vrf || '/' AND p.space_key < shared)
        OR EXISTS (SELECT FROM prefixes AS p WHERE p.space_key > shared AND p.space_key < vrf || '0')
      ) THEN
        SELECT array_agg(p.id), array_agg(p.id) FILTER (WHERE p.cidr <> network AND (p.cidr = container OR p.tenant_id <> 'platform'))
          INTO above, ancestors
          FROM prefixes AS p WHERE p.cidr = ANY (supernets(network)) AND p.vrf_key = vrf;
        RETURN QUERY SELECT a, false FROM unnest(above) AS a;
        RETURN QUERY SELECT p.id, false FROM prefixes AS p
          WHERE p.parent_prefix_id = ANY (ancestors) AND p.cidr > network AND p.cidr <= highest;
        IF container IS NULL THEN
          RETURN QUERY SELECT p.id, false FROM prefixes AS p
            WHERE p.vrf_key = vrf AND p.parent_prefix_id IS NULL AND p.cidr > network AND p.cidr <= highest;
        END IF;
        RETURN;
      END IF;

      IF shared_container IS NOT NULL AND (container IS NULL OR masklen(shared_container) > masklen(container)) THEN
        ancestors := ARRAY(SELECT p.id FROM prefixes AS p WHERE p.space_key = shared AND p.cidr = shared_container);
      ELSIF container IS NOT NULL THEN
        ancestors := ARRAY(SELECT p.id FROM prefixes AS p WHERE p.space_key = own AND p.cidr = container);
      ELSE
        RETURN QUERY SELECT p.id, false FROM prefixes AS p
          WHERE p.space_key = own AND p.parent_prefix_id IS NULL AND p.cidr > network AND p.cidr <= highest;
        RETURN;
      END IF;
      RETURN QUERY SELECT p.id, false FROM prefixes AS p
        WHERE p.space_key = own AND p.parent_prefix_id = ANY (ancestors) AND p.cidr > network AND p.cidr <= highest;
    END $$;
  `);
}

export const down = async (knex: Knex): Promise<void> =>
  void (await knex.raw('DROP FUNCTION prefixes_near'));
