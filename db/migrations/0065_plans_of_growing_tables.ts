import type { Knex } from 'knex';

/** The tables whose records the planner finds by keys. Others are small, or are read by their ids only. */
const TABLES = [
  'prefixes',
  'ip_addresses',
  'ip_ranges',
  'vlans',
  'devices',
  'interfaces',
  'cables',
  'racks',
];

/**
 * A plan that was made while a table had one page reads all of it for each lookup: nothing shows then that
 * another index is better. PostgreSQL keeps plans until the table is analysed, which may be a minute after it
 * was filled, and a batch of 1,000 records then took longer than a statement may. Each connection now drops its
 * plans when one of the tables has grown or shrunk by a factor of four. The numbers of rows are those of the
 * statistics, which are a second old: reading the size of a table would wait for a lock of it.
 */
export async function up(knex: Knex): Promise<void> {
  const sizes = TABLES.map(
    (table) => `floor(ln(pg_stat_get_live_tuples('${table}'::regclass) / 64 + 1) / ln(4))`,
  );
  await knex.raw(`
    CREATE OR REPLACE FUNCTION use_indexes() RETURNS void LANGUAGE plpgsql AS $$
    DECLARE
      done text;
      sizes text := concat_ws(' ', ${sizes.join(', ')});
    BEGIN
      IF sizes IS DISTINCT FROM current_setting('holdfast.planned_sizes', true) THEN
        DISCARD PLANS;
        done := set_config('holdfast.planned_sizes', sizes, false);
      END IF;
      done := set_config('enable_hashjoin', 'off', true);
      done := set_config('enable_mergejoin', 'off', true);
      done := set_config('enable_seqscan', 'off', true);
      done := set_config('jit', 'off', true);
      done := set_config('plan_cache_mode', 'force_generic_plan', true);
    END $$;
  `);
}

export async function down(knex: Knex): Promise<void> {
  await knex.raw(`
    CREATE OR REPLACE FUNCTION use_indexes() RETURNS void LANGUAGE plpgsql AS $$
    DECLARE
      done text;
    BEGIN
      done := set_config('enable_hashjoin', 'off', true);
      done := set_config('enable_mergejoin', 'off', true);
      done := set_config('enable_seqscan', 'off', true);
      done := set_config('jit', 'off', true);
      done := set_config('plan_cache_mode', 'force_generic_plan', true);
    END $$;
  `);
}
