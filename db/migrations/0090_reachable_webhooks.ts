import type { Knex } from 'knex';

/**
 * The queue of deliveries spares endpoints that cannot be reached, and not those that reject some events.
 * `unreachable_since`: since when no attempt had a usable answer. `probed_at`: when the queue has last started a
 * delivery beyond the number that may be open.
 *
 * `publish_batch` without deliveries (`max_deliveries` 0) assigns sequences only: readers wait for nothing else.
 */
export async function up(knex: Knex): Promise<void> {
  await knex.raw(`
    ALTER TABLE webhooks ADD COLUMN unreachable_since timestamptz, ADD COLUMN probed_at timestamptz;
    ${publishBatch({ canOmitDeliveries: true })}
  `);
}

export async function down(knex: Knex): Promise<void> {
  await knex.raw(`
    ${publishBatch({ canOmitDeliveries: false })}
    ALTER TABLE webhooks DROP COLUMN unreachable_since, DROP COLUMN probed_at;
  `);
}

const publishBatch = ({ canOmitDeliveries }: { canOmitDeliveries: boolean }) => `
    CREATE OR REPLACE FUNCTION publish_batch(
      max_events integer, max_deliveries integer, lock_timeout_ms integer, published_at timestamptz,
      OUT types text[], OUT delivery_count bigint, OUT is_left boolean
    ) LANGUAGE plpgsql AS $$
    DECLARE
      head bigint;
    BEGIN
      types := '{}';
      delivery_count := 0;
      is_left := false;
      IF NOT EXISTS (SELECT FROM events WHERE sequence IS NULL)
        AND ${canOmitDeliveries ? '(max_deliveries = 0 OR ' : ''}NOT EXISTS (SELECT FROM event_fan_outs)${canOmitDeliveries ? ')' : ''}
      THEN RETURN; END IF;
      IF lock_timeout_ms IS NOT NULL THEN
        PERFORM set_config('lock_timeout', lock_timeout_ms::text, true);
      END IF;
      SELECT h.sequence INTO STRICT head FROM event_head AS h FOR UPDATE;
      WITH batch AS (
        SELECT e.id, row_number() OVER (ORDER BY e.id) AS n
        FROM (SELECT id FROM events WHERE sequence IS NULL ORDER BY id LIMIT max_events) AS e
      ), advanced AS (
        UPDATE event_head SET sequence = head + (SELECT count(*) FROM batch)
        WHERE EXISTS (SELECT FROM batch)
      ), published AS (
        UPDATE events AS e SET sequence = head + batch.n FROM batch WHERE e.id = batch.id
        RETURNING e.tenant_id, e.type, e.sequence
      ), waiting AS (
        INSERT INTO event_fan_outs (tenant_id, sequence, webhook_id, served_at)
        SELECT p.tenant_id, min(p.sequence), '', clock_timestamp() FROM published AS p
        GROUP BY p.tenant_id
        HAVING EXISTS (
          SELECT FROM webhooks AS w WHERE w.enabled AND w.tenant_id IN (p.tenant_id, 'platform'))
        ON CONFLICT (tenant_id) DO NOTHING
      )
      SELECT COALESCE(array_agg(p.type), '{}') INTO types FROM published AS p;
      ${
        canOmitDeliveries
          ? `IF max_deliveries = 0 THEN
        is_left := EXISTS (SELECT FROM event_fan_outs);
        RETURN;
      END IF;`
          : ''
      }
      SELECT f.delivery_count, f.is_left INTO delivery_count, is_left
        FROM fan_out_events(max_deliveries, published_at) AS f;
    END $$;`;
