import type { Knex } from 'knex';
import * as eventFanOuts from './0089_event_fan_outs.ts';

/**
 * What an event comes before or after is decided by PostgreSQL, not by the clocks of processes.
 *
 * `position` is assigned when an event is written, which is after the change that it is about: a second transaction
 * that changes the same record waits for the first one, and writes its events afterwards. `publish_batch`
 * assigns sequences in this order. Events that are not published yet have the position 0 and come first. The
 * sequence of the positions belongs to no column, since a restore into an empty database replaces the table.
 *
 * A failover may lose commits whose sequences followers have seen. PostgreSQL begins a timeline with each: when it is
 * another one than at the last publication, the next sequence is one that was never assigned, as after a restore into
 * an empty database. Services that are like PostgreSQL, but have no timelines, continue as before.
 *
 * A webhook gets the events with a sequence after `enabled_sequence`. Triggers store it, so it is right for
 * webhooks that processes of version 0.2 create or enable, too. What is published concurrently is either
 * after it, or matched before the webhook is visible.
 */
export async function up(knex: Knex): Promise<void> {
  await knex.raw(`
    CREATE SEQUENCE events_position;
    ALTER TABLE events ADD COLUMN position bigint NOT NULL DEFAULT 0;
    ALTER TABLE events ALTER COLUMN position SET DEFAULT nextval('events_position');

    ALTER TABLE event_head ADD COLUMN timeline text COLLATE "C";
    CREATE FUNCTION current_timeline() RETURNS text LANGUAGE plpgsql AS $$
    BEGIN
      RETURN substr(pg_walfile_name(pg_current_wal_lsn()), 1, 8);
    EXCEPTION WHEN OTHERS THEN
      RETURN NULL;
    END $$;

    ALTER TABLE webhooks ADD COLUMN enabled_sequence bigint;
    CREATE FUNCTION store_enabled_sequence() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN
      NEW.enabled_sequence := (SELECT h.sequence FROM event_head AS h);
      RETURN NEW;
    END $$;
    CREATE TRIGGER webhook_created BEFORE INSERT ON webhooks FOR EACH ROW
      WHEN (NEW.enabled AND NEW.enabled_sequence IS NULL)
      EXECUTE FUNCTION store_enabled_sequence();
    CREATE TRIGGER webhook_enabled BEFORE UPDATE OF enabled ON webhooks FOR EACH ROW
      WHEN (NEW.enabled AND NOT OLD.enabled)
      EXECUTE FUNCTION store_enabled_sequence();

    CREATE OR REPLACE FUNCTION fan_out_events(
      max_deliveries integer, published_at timestamptz,
      OUT delivery_count bigint, OUT is_left boolean
    ) LANGUAGE plpgsql AS $$
    DECLARE
      deadline      timestamptz := clock_timestamp() + interval '250 ms';
      turn          record;
      share         integer;
      most_events   integer;
      events_read   bigint;
      last_sequence bigint;
      sequences     bigint[];
      event_ids     text[];
      webhook_ids   text[];
      locked_ids    text[];
      pairs         integer;
      done          integer;
      added         bigint;
    BEGIN
      delivery_count := 0;
      SELECT greatest(max_deliveries / greatest(count(*), 1), 1) INTO share
        FROM (SELECT FROM event_fan_outs LIMIT 200) AS waiting;
      FOR turn IN SELECT f.* FROM event_fan_outs AS f ORDER BY f.served_at, f.tenant_id LIMIT 200 LOOP
        -- At most about 100,000 pairs of an event and a webhook are compared.
        SELECT greatest(least(500, 100000 / greatest(count(*), 1)), 1) INTO most_events FROM webhooks AS w
          WHERE w.enabled AND w.tenant_id IN (turn.tenant_id, 'platform');
        SELECT array_agg(m.sequence ORDER BY m.sequence, m.webhook_id),
               array_agg(m.event_id ORDER BY m.sequence, m.webhook_id),
               array_agg(m.webhook_id ORDER BY m.sequence, m.webhook_id), count(*)
        INTO sequences, event_ids, webhook_ids, pairs
        FROM (
          SELECT e.id AS event_id, e.sequence, w.id AS webhook_id
          FROM (
            SELECT e.id, e.sequence, e.type, e.created_at FROM events AS e
            WHERE e.tenant_id = turn.tenant_id AND e.sequence >= turn.sequence
            ORDER BY e.sequence LIMIT most_events
          ) AS e CROSS JOIN LATERAL (
            SELECT w.id FROM webhooks AS w
            WHERE w.enabled AND w.tenant_id IN (turn.tenant_id, 'platform')
              -- Without a sequence, it was enabled before the sequence was stored.
              AND COALESCE(e.sequence > w.enabled_sequence, e.created_at > w.enabled_at - interval '1 second')
              AND w.event_types && ARRAY[e.type, '*']
              AND (e.sequence > turn.sequence OR w.id > turn.webhook_id)
            ORDER BY w.id LIMIT share
          ) AS w
          ORDER BY e.sequence, w.id LIMIT share
        ) AS m;
        done := pairs;
        IF pairs > 0 THEN
          SELECT COALESCE(array_agg(l.id), '{}') INTO locked_ids FROM (
            SELECT w.id FROM webhooks AS w WHERE w.id = ANY (webhook_ids) AND w.enabled
            ORDER BY w.id FOR SHARE SKIP LOCKED) AS l;
          -- A webhook that is not locked was disabled since it was read, or another transaction has it.
          SELECT COALESCE(min(p.n) - 1, pairs) INTO done
            FROM unnest(webhook_ids) WITH ORDINALITY AS p (webhook_id, n)
            JOIN webhooks AS w ON w.id = p.webhook_id AND w.enabled
            LEFT JOIN unnest(locked_ids) AS l (id) ON l.id = p.webhook_id
            WHERE l.id IS NULL;
          WITH inserted AS (
            INSERT INTO deliveries
              (id, tenant_id, webhook_id, event_id, status, queued_at, created_at, updated_at)
            SELECT 'dlv_' || substr(p.event_id, 5, 14) || right(gen_random_uuid()::text, 12),
                   w.tenant_id, w.id, p.event_id, 'pending', published_at, published_at, published_at
            FROM unnest(event_ids, webhook_ids) WITH ORDINALITY AS p (event_id, webhook_id, n)
            JOIN unnest(locked_ids) AS l (id) ON l.id = p.webhook_id
            JOIN webhooks AS w ON w.id = l.id
            WHERE p.n <= done
            -- A replay may have queued it before.
            ON CONFLICT (event_id, webhook_id) DO NOTHING
            RETURNING id
          )
          SELECT count(*) INTO added FROM inserted;
          delivery_count := delivery_count + added;
        END IF;
        IF done < pairs OR pairs = share THEN
          UPDATE event_fan_outs AS f SET served_at = clock_timestamp(),
            sequence = CASE WHEN done > 0 THEN sequences[done] ELSE f.sequence END,
            webhook_id = CASE WHEN done > 0 THEN webhook_ids[done] ELSE f.webhook_id END
          WHERE f.tenant_id = turn.tenant_id;
        ELSE
          SELECT count(*), max(e.sequence) INTO events_read, last_sequence FROM (
            SELECT e.sequence FROM events AS e
            WHERE e.tenant_id = turn.tenant_id AND e.sequence >= turn.sequence
            ORDER BY e.sequence LIMIT most_events) AS e;
          IF events_read < most_events THEN
            DELETE FROM event_fan_outs AS f WHERE f.tenant_id = turn.tenant_id;
          ELSE
            UPDATE event_fan_outs AS f
            SET served_at = clock_timestamp(), sequence = last_sequence + 1, webhook_id = ''
            WHERE f.tenant_id = turn.tenant_id;
          END IF;
        END IF;
        EXIT WHEN clock_timestamp() > deadline;
      END LOOP;
      is_left := EXISTS (SELECT FROM event_fan_outs);
    END $$;

    CREATE OR REPLACE FUNCTION publish_batch(
      max_events integer, max_deliveries integer, lock_timeout_ms integer, published_at timestamptz,
      OUT types text[], OUT delivery_count bigint, OUT is_left boolean
    ) LANGUAGE plpgsql AS $$
    DECLARE
      head         bigint;
      timeline_now text;
      timeline_was text;
    BEGIN
      types := '{}';
      delivery_count := 0;
      is_left := false;
      IF NOT EXISTS (SELECT FROM events WHERE sequence IS NULL)
        AND (max_deliveries = 0 OR NOT EXISTS (SELECT FROM event_fan_outs)) THEN RETURN; END IF;
      IF lock_timeout_ms IS NOT NULL THEN
        PERFORM set_config('lock_timeout', lock_timeout_ms::text, true);
      END IF;
      SELECT h.sequence, h.timeline INTO STRICT head, timeline_was FROM event_head AS h FOR UPDATE;
      timeline_now := current_timeline();
      IF timeline_now <> timeline_was THEN
        head := greatest(head + 1000000000, (extract(epoch FROM clock_timestamp()) * 1000000)::bigint);
      END IF;
      WITH batch AS (
        SELECT e.id, row_number() OVER (ORDER BY e.position, e.id) AS n
        FROM (
          SELECT id, position FROM events WHERE sequence IS NULL ORDER BY position, id LIMIT max_events
        ) AS e
      ), advanced AS (
        UPDATE event_head
        SET sequence = head + (SELECT count(*) FROM batch), timeline = COALESCE(timeline_now, timeline)
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
      IF max_deliveries = 0 THEN
        is_left := EXISTS (SELECT FROM event_fan_outs);
        RETURN;
      END IF;
      SELECT f.delivery_count, f.is_left INTO delivery_count, is_left
        FROM fan_out_events(max_deliveries, published_at) AS f;
    END $$;
  `);
}

export async function down(knex: Knex): Promise<void> {
  // Deliveries that are not inserted yet are not forgotten.
  await knex.raw('CREATE TEMP TABLE kept_fan_outs AS TABLE event_fan_outs');
  await eventFanOuts.down(knex);
  await eventFanOuts.up(knex);
  await knex.raw(`
    INSERT INTO event_fan_outs SELECT * FROM kept_fan_outs;
    DROP TABLE kept_fan_outs;
    ALTER TABLE event_head DROP COLUMN timeline;
    DROP FUNCTION current_timeline;
    DROP TRIGGER webhook_enabled ON webhooks;
    DROP TRIGGER webhook_created ON webhooks;
    DROP FUNCTION store_enabled_sequence;
    ALTER TABLE webhooks DROP COLUMN enabled_sequence;
    ALTER TABLE events DROP COLUMN position;
    DROP SEQUENCE events_position;
  `);
}
