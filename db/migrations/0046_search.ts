import type { Knex } from 'knex';

/** The texts of schedules, approval requests and users that a search reads, and serial numbers of racks. */
export async function up(knex: Knex): Promise<void> {
  await knex.raw(`
    CREATE INDEX schedules_search ON schedules USING gin (lower(name) gin_trgm_ops) WHERE deleted_at IS NULL;
    CREATE INDEX approvals_search ON approvals USING gin (lower(title) gin_trgm_ops);
    CREATE INDEX users_search ON users USING gin (lower(username || ' ' || display_name) gin_trgm_ops);
    CREATE INDEX racks_serial ON racks (serial);
  `);
}

export async function down(knex: Knex): Promise<void> {
  await knex.raw('DROP INDEX racks_serial, users_search, approvals_search, schedules_search');
}
