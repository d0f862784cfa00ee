import type { Knex } from 'knex';

/**
 * The locks of a transaction that writes to the inventory, and its planner settings, as one call. Most
 * transactions write to one space: it then takes each lock with a plain expression (an assignment to
 * `done`), which costs a fraction of a statement that sorts and groups one row.
 */
export async function up(knex: Knex): Promise<void> {
  await knex.raw(`
    -- A plan makes many small lookups by key. Each must use an index, whatever the statistics of a recently
    -- filled table say. Planning such a query takes ten times as long as running it.
    CREATE FUNCTION use_indexes() RETURNS void LANGUAGE plpgsql AS $$
    DECLARE
      done text;
    BEGIN
      done := set_config('enable_hashjoin', 'off', true);
      done := set_config('enable_mergejoin', 'off', true);
      done := set_config('enable_seqscan', 'off', true);
      done := set_config('jit', 'off', true);
      done := set_config('plan_cache_mode', 'force_generic_plan', true);
    END $$;

    -- Limits how long the rest of the transaction waits for each lock.
    CREATE FUNCTION limit_lock_wait() RETURNS void LANGUAGE plpgsql AS $$
    DECLARE
      done text;
    BEGIN
      done := set_config('lock_timeout', coalesce(nullif(current_setting('holdfast.lock_wait', true), ''), '100ms'), true);
    END $$;

    -- The wait is limited if the transaction is about to lock exclusively what tenants share: tenants queue
    -- behind such a writer, also while it waits. Such writers first take turns, which no tenant waits for, so
    -- that one of them waits for tenants at a time.
    CREATE FUNCTION take_turn(vrfs text[], tenants text[], for_platform boolean, exclusive_definers text[], is_brief boolean)
    RETURNS void LANGUAGE plpgsql AS $$
    DECLARE
      turn text;
      must_limit boolean := is_brief;
      done boolean;
    BEGIN
      IF exclusive_definers = '{}' AND cardinality(vrfs) = 1 THEN
        turn := CASE WHEN for_platform THEN shared_space(space_of(vrfs[1], tenants[1])) END;
        IF turn IS NOT NULL THEN
          done := pg_advisory_xact_lock(hashtextextended('inventory:turn:' || turn, 0)) IS NULL;
          must_limit := true;
        END IF;
      ELSE
        SELECT count(pg_advisory_xact_lock(key)) > 0 OR is_brief INTO must_limit FROM (
          SELECT DISTINCT hashtextextended('inventory:turn:' || wanted, 0) AS key FROM (
            SELECT shared_space(space_of(vrf, tenant)) AS wanted FROM unnest(vrfs, tenants) AS asked (vrf, tenant) WHERE for_platform
            UNION ALL SELECT 'definitions' WHERE 'platform' = ANY (exclusive_definers)) AS turns
          WHERE wanted IS NOT NULL ORDER BY 1) AS keys;
      END IF;
      IF must_limit THEN done := limit_lock_wait() IS NULL; END IF;
    END $$;

    -- Locks the definitions of tenants in one order, those of the platform first.
    CREATE FUNCTION lock_definitions(shared_definers text[], exclusive_definers text[]) RETURNS void LANGUAGE plpgsql AS $$
    DECLARE
      done boolean;
    BEGIN
      IF exclusive_definers = '{}' AND shared_definers = '{}' THEN RETURN; END IF;
      IF exclusive_definers = '{}' AND (cardinality(shared_definers) = 1 OR cardinality(shared_definers) = 2 AND shared_definers[1] = 'platform') THEN
        FOR i IN 1..cardinality(shared_definers) LOOP
          done := pg_advisory_xact_lock_shared(hashtextextended('inventory:custom-fields:' || shared_definers[i], 0)) IS NULL;
        END LOOP;
        RETURN;
      END IF;
      PERFORM CASE WHEN is_exclusive THEN pg_advisory_xact_lock(key) ELSE pg_advisory_xact_lock_shared(key) END FROM (
        SELECT hashtextextended('inventory:custom-fields:' || tenant, 0) AS key, bool_or(is_exclusive) AS is_exclusive
        FROM (SELECT tenant, FALSE AS is_exclusive FROM unnest(shared_definers) AS shared (tenant)
          UNION ALL SELECT tenant, TRUE FROM unnest(exclusive_definers) AS exclusive (tenant)) AS asked
        GROUP BY tenant ORDER BY tenant <> 'platform', 1) AS keys;
    END $$;

    -- Locks spaces in one order, which prevents deadlocks, and after them the space of the platform in shared
    -- tables: exclusively for callers who may write there, else shared, so that tenants do not wait for each other.
    CREATE FUNCTION lock_spaces(vrfs text[], tenants text[], for_platform boolean) RETURNS void LANGUAGE plpgsql AS $$
    DECLARE
      own text;
      shared text;
      done boolean;
    BEGIN
      IF vrfs = '{}' THEN RETURN; END IF;
      IF cardinality(vrfs) > 1 THEN
        PERFORM CASE WHEN is_exclusive THEN pg_advisory_xact_lock(key) ELSE pg_advisory_xact_lock_shared(key) END FROM (
          SELECT hashtextextended('inventory:vrf:' || space, 0) AS key, space = shared_space(space) IS TRUE AS is_last, bool_and(is_exclusive) AS is_exclusive
          FROM (SELECT space_of(vrf, tenant) AS own_space FROM unnest(vrfs, tenants) AS asked (vrf, tenant)) AS asked
            CROSS JOIN LATERAL (VALUES (own_space, shared_space(own_space) IS DISTINCT FROM own_space OR for_platform), (shared_space(own_space), for_platform)) AS locked (space, is_exclusive)
          WHERE space IS NOT NULL GROUP BY space ORDER BY 2, 1) AS keys;
        RETURN;
      END IF;
      own := space_of(vrfs[1], tenants[1]);
      shared := shared_space(own);
      IF own IS DISTINCT FROM shared THEN
        done := pg_advisory_xact_lock(hashtextextended('inventory:vrf:' || own, 0)) IS NULL;
      END IF;
      IF shared IS NULL THEN RETURN; END IF;
      IF for_platform THEN done := pg_advisory_xact_lock(hashtextextended('inventory:vrf:' || shared, 0)) IS NULL;
      ELSE done := pg_advisory_xact_lock_shared(hashtextextended('inventory:vrf:' || shared, 0)) IS NULL;
      END IF;
    END $$;

    CREATE FUNCTION prepare_to_write(
      takes_turn boolean, is_brief boolean, vrfs text[], tenants text[], for_platform boolean, shared_definers text[], exclusive_definers text[]
    ) RETURNS void LANGUAGE plpgsql AS $$
    DECLARE
      done boolean;
    BEGIN
      done := use_indexes() IS NULL;
      IF takes_turn THEN done := take_turn(vrfs, tenants, for_platform, exclusive_definers, is_brief) IS NULL; END IF;
      done := lock_definitions(shared_definers, exclusive_definers) IS NULL;
      done := lock_spaces(vrfs, tenants, for_platform) IS NULL;
    END $$;
  `);
}

export async function down(knex: Knex): Promise<void> {
  await knex.raw(
    'DROP FUNCTION prepare_to_write, lock_spaces, lock_definitions, take_turn, limit_lock_wait, use_indexes',
  );
}
