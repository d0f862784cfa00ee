import type { Knex } from 'knex';

/** Indexes for the orders of lists that were only by the time of creation. */
const INDEXES: Readonly<Record<string, string>> = {
  approvals_expiring: 'approvals (tenant_id, expires_at, id)',
  approvals_all_expiring: 'approvals (expires_at, id)',
  approvals_changed: 'approvals (tenant_id, updated_at, id)',
  approvals_all_changed: 'approvals (updated_at, id)',
};

export async function up(knex: Knex): Promise<void> {
  for (const [name, definition] of Object.entries(INDEXES))
    await knex.raw(`CREATE INDEX ${name} ON ${definition}`);
}

export const down = async (knex: Knex): Promise<void> =>
  void (await knex.raw(`DROP INDEX ${Object.keys(INDEXES).join(', ')}`));
