import type { Knex } from 'knex';

/**
 * Who has had control of a service account: its owners, who has changed the owner, and who has issued or
 * replaced its secrets. None of them decides on what it requests. `name` is a normalized actor id; rows
 * are never deleted.
 */
export async function up(knex: Knex): Promise<void> {
  await knex.raw(`
    CREATE TABLE account_controllers (
      account_id text COLLATE "C" NOT NULL,
      name       text COLLATE "C" NOT NULL,
      tenant_id  text COLLATE "C" NOT NULL,
      since      timestamptz NOT NULL,
      PRIMARY KEY (account_id, name, tenant_id)
    );
    INSERT INTO account_controllers
      SELECT id, owner_id, 'platform', updated_at FROM users WHERE owner_id IS NOT NULL;
    INSERT INTO account_controllers
      SELECT DISTINCT ON (user_id, created_by) user_id, lower(btrim(normalize(created_by, NFKC))),
        CASE WHEN created_by LIKE 'usr\\_%' THEN 'platform' ELSE tenant_id END, created_at
      FROM tokens WHERE kind = 'service' AND created_by <> 'system'
    ON CONFLICT DO NOTHING;
  `);
}

export async function down(knex: Knex): Promise<void> {
  await knex.raw('DROP TABLE account_controllers');
}
