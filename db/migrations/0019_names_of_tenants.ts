import type { Knex } from 'knex';

/**
 * Names at a site and in a VLAN group are unique within each tenant: what one tenant calls its records
 * there is nothing to another. Column orders keep the lookups by site and name.
 */
export async function up(knex: Knex): Promise<void> {
  for (const [table, owner] of NAMED) {
    await knex.raw(
      table === 'devices'
        ? 'DROP INDEX devices_name'
        : `ALTER TABLE ${table} DROP CONSTRAINT ${table}_${owner}_name_key`,
    );
    await knex.raw(
      `CREATE UNIQUE INDEX ${table}_name_of_tenant ON ${table} (${owner}, name, tenant_id)`,
    );
  }
}

/** Tables with names, and the column with the record at which they are. */
const NAMED = [
  ['devices', 'site_id'],
  ['locations', 'site_id'],
  ['racks', 'site_id'],
  ['vlans', 'group_id'],
] as const;

/** Of records of several tenants with one name, the oldest keeps it; the others get their id appended. */
export async function down(knex: Knex): Promise<void> {
  for (const [table, owner] of NAMED) {
    await knex.raw(`
      DROP INDEX ${table}_name_of_tenant;
      UPDATE ${table} AS t SET name = left(t.name, 200) || ' (' || t.id || ')', updated_at = now(), version = t.version + 1
      FROM (
        SELECT id, row_number() OVER (PARTITION BY ${owner}, name ORDER BY id) AS number
        FROM ${table} WHERE ${owner} IS NOT NULL
      ) AS same_name
      WHERE same_name.id = t.id AND same_name.number > 1;
    `);
    await knex.raw(
      table === 'devices'
        ? 'CREATE UNIQUE INDEX devices_name ON devices (site_id, name)'
        : `ALTER TABLE ${table} ADD CONSTRAINT ${table}_${owner}_name_key UNIQUE (${owner}, name)`,
    );
  }
}
