import type { Knex } from 'knex';

/**
 * Names of schedules are unique in their tenant. Of existing duplicates, the oldest keeps its name
 * and the others get their id appended. Jobs are listed by the record that created them.
 */
export const up = async (knex: Knex): Promise<void> =>
  void (await knex.raw(`
    UPDATE schedules AS s
    SET name = left(s.name, 200) || ' (' || s.id || ')', updated_at = now(), version = s.version + 1
    FROM (
      SELECT id, row_number() OVER (PARTITION BY tenant_id, name ORDER BY id) AS number
      FROM schedules WHERE deleted_at IS NULL
    ) AS same_name
    WHERE same_name.id = s.id AND same_name.number > 1;
    CREATE UNIQUE INDEX schedules_name ON schedules (tenant_id, name) WHERE deleted_at IS NULL;

    CREATE INDEX jobs_source ON jobs (source_id, id DESC) WHERE source_id IS NOT NULL;
  `));

export const down = async (knex: Knex): Promise<void> =>
  void (await knex.raw('DROP INDEX jobs_source; DROP INDEX schedules_name;'));
