import type { Knex } from 'knex';
import { up as asBefore } from './0032_prefixes_near.ts';

/**
 * What tenants have around or in a network of the platform is found by the index on their prefixes, so that
 * the same networks of other VRFs are not read. Two columns are compared together, as in 0033. Everything else is
 * as in 0032.
 */
export async function up(knex: Knex): Promise<void> {
  await knex.raw(`
    CREATE OR REPLACE FUNCTION prefixes_near(vrf text, tenant text, network cidr, is_wide boolean)
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
      IF own = shared AND EXISTS (SELECT FROM prefixes AS p WHERE p.vrf_key = vrf AND p.in_shared_table AND p.tenant_id <> 'platform') THEN
        SELECT array_agg(p.id), array_agg(p.id) FILTER (WHERE p.cidr <> network)
          INTO above, ancestors
          FROM prefixes AS p WHERE p.vrf_key = vrf AND p.in_shared_table AND p.tenant_id <> 'platform' AND p.cidr = ANY (supernets(network));
        RETURN QUERY SELECT a, false FROM unnest(above) AS a;
        ancestors := coalesce(ancestors, '{}') || ARRAY(SELECT p.id FROM prefixes AS p WHERE p.space_key = own AND p.cidr = container);
        RETURN QUERY SELECT p.id, false FROM unnest(ancestors) AS a JOIN prefixes AS p
          ON (p.parent_prefix_id, p.cidr) > (a, network) AND (p.parent_prefix_id, p.cidr) <= (a, highest);
        IF container IS NULL THEN
          RETURN QUERY SELECT p.id, false FROM prefixes AS p
            WHERE p.vrf_key = vrf AND p.in_shared_table AND p.tenant_id <> 'platform' AND p.parent_prefix_id IS NULL AND (p.vrf_key, p.cidr) > (vrf, network) AND (p.vrf_key, p.cidr) <= (vrf, highest);
          RETURN QUERY SELECT p.id, false FROM prefixes AS p
            WHERE p.parent_prefix_id IS NULL AND (p.space_key, p.cidr) > (own, network) AND (p.space_key, p.cidr) <= (own, highest);
        END IF;
        RETURN;
      END IF;

      IF shared_container IS NOT NULL AND (container IS NULL OR masklen(shared_container) > masklen(container)) THEN
        ancestors := ARRAY(SELECT p.id FROM prefixes AS p WHERE p.space_key = shared AND p.cidr = shared_container);
      ELSIF container IS NOT NULL THEN
        ancestors := ARRAY(SELECT p.id FROM prefixes AS p WHERE p.space_key = own AND p.cidr = container);
      ELSE
        RETURN QUERY SELECT p.id, false FROM prefixes AS p
          WHERE p.parent_prefix_id IS NULL AND (p.space_key, p.cidr) > (own, network) AND (p.space_key, p.cidr) <= (own, highest);
        RETURN;
      END IF;
      RETURN QUERY SELECT p.id, false FROM unnest(ancestors) AS a JOIN prefixes AS p
        ON (p.parent_prefix_id, p.cidr) > (a, network) AND (p.parent_prefix_id, p.cidr) <= (a, highest) WHERE p.space_key = own;
    END $$;
  `);
}

export async function down(knex: Knex): Promise<void> {
  await knex.raw('DROP FUNCTION prefixes_near');
  await asBefore(knex);
}
