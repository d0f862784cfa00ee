import type { Knex } from 'knex';

/**
 * Events are published by one call. `deliveries.leased_until`: until then the process that makes the
 * first attempt of a delivery is taken to be alive; null when no process makes one.
 *
 * The function reads after it has the lock of `event_head`: each statement of a volatile function has
 * a snapshot of its own. The id of a delivery has the time of its event, so ids are in the order of
 * events; its last 12 digits, which are also digits of base 32, are random.
 */
export async function up(knex: Knex): Promise<void> {
  await knex.raw(`
    ALTER TABLE deliveries ADD leased_until timestamptz;

    CREATE FUNCTION publish_events(
      max_events integer, lock_timeout_ms integer, published_at timestamptz,
      OUT types text[], OUT delivery_count bigint
    ) LANGUAGE plpgsql AS $$
    DECLARE
      head bigint;
    BEGIN
      types := '{}';
      delivery_count := 0;
      IF NOT EXISTS (SELECT FROM events WHERE sequence IS NULL) THEN RETURN; END IF;
      IF lock_timeout_ms IS NOT NULL THEN
        PERFORM set_config('lock_timeout', lock_timeout_ms::text, true);
      END IF;
      SELECT h.sequence INTO STRICT head FROM event_head AS h FOR UPDATE;
      WITH batch AS (
        SELECT e.id, row_number() OVER (ORDER BY e.id) AS n
        FROM (SELECT id FROM events WHERE sequence IS NULL ORDER BY id LIMIT max_events) AS e
      ), advanced AS (
        UPDATE event_head SET sequence = head + (SELECT count(*) FROM batch)
      ), published AS (
        UPDATE events AS e SET sequence = head + batch.n FROM batch WHERE e.id = batch.id
        RETURNING e.id, e.tenant_id, e.type, e.created_at
      ), matched AS (
        SELECT p.id AS event_id, w.id AS webhook_id, w.tenant_id
        FROM published AS p
        JOIN webhooks AS w ON w.enabled AND w.tenant_id IN (p.tenant_id, 'platform')
          AND p.created_at > w.enabled_at - interval '1 second'
          AND w.event_types && ARRAY[p.type, '*']
        FOR SHARE OF w
      ), added AS (
        INSERT INTO deliveries
          (id, tenant_id, webhook_id, event_id, status, queued_at, created_at, updated_at)
        SELECT 'dlv_' || substr(event_id, 5, 14) || right(gen_random_uuid()::text, 12),
               tenant_id, webhook_id, event_id, 'pending', published_at, published_at, published_at
        FROM matched
        RETURNING id
      )
      SELECT COALESCE((SELECT array_agg(p.type) FROM published AS p), '{}'),
             (SELECT count(*) FROM added)
      INTO types, delivery_count;
    END $$;
  `);
}

export async function down(knex: Knex): Promise<void> {
  await knex.raw(`
    DROP FUNCTION publish_events;
    ALTER TABLE deliveries DROP leased_until;
  `);
}
