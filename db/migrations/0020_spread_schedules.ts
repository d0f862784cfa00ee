import type { Knex } from 'knex';

/**
 * Over how many seconds the runs of a schedule are spread. Existing schedules get what they would
 * have got if they were created in the order of their ids; the reconciler then updates their
 * Temporal Schedules. The platform's are not spread.
 */
export async function up(knex: Knex): Promise<void> {
  await knex.raw(`
    ALTER TABLE schedules ADD spread_seconds integer NOT NULL DEFAULT 0 CHECK (spread_seconds >= 0);
    UPDATE schedules AS s SET spread_seconds = least(r.number - 10, 50)
    FROM (
      SELECT id, row_number() OVER (PARTITION BY tenant_id ORDER BY id) AS number
      FROM schedules WHERE deleted_at IS NULL AND tenant_id <> 'platform'
    ) AS r
    WHERE r.id = s.id AND r.number > 10;
  `);
}

export const down = async (knex: Knex): Promise<void> =>
  void (await knex.raw('ALTER TABLE schedules DROP spread_seconds'));
