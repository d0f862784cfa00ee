import type { Knex } from 'knex';

/**
 * Who wrote the payload of a schedule and the URL of a webhook: only they see the credentials in it.
 * Of older ones it is not known, so nobody does.
 *
 * A route distinguisher is unique in its tenant: another tenant cannot take it.
 */
export async function up(knex: Knex): Promise<void> {
  await knex.raw(`
    ALTER TABLE schedules ADD payload_author text;
    ALTER TABLE webhooks ADD endpoint_author text;
    ALTER TABLE vrfs DROP CONSTRAINT vrfs_rd_key, ADD CONSTRAINT vrfs_rd UNIQUE (tenant_id, rd);
  `);
}

export async function down(knex: Knex): Promise<void> {
  await knex.raw(`
    UPDATE vrfs SET rd = NULL WHERE EXISTS (
      SELECT FROM vrfs AS other WHERE other.rd = vrfs.rd AND other.id < vrfs.id);
    ALTER TABLE vrfs DROP CONSTRAINT vrfs_rd, ADD CONSTRAINT vrfs_rd_key UNIQUE (rd);
    ALTER TABLE schedules DROP payload_author;
    ALTER TABLE webhooks DROP endpoint_author;
  `);
}
