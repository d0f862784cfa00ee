import type { Knex } from 'knex';

/**
 * Named secrets of tenants and of the platform. `sealed` is the value, encrypted with a master key.
 * `pools` are names: a pool may be made later, and one that is deleted receives nothing.
 */
export const up = async (knex: Knex): Promise<void> =>
  void (await knex.raw(`
    CREATE TABLE secrets (
      id           text COLLATE "C" PRIMARY KEY,
      tenant_id    text COLLATE "C" NOT NULL,
      name         text COLLATE "C" NOT NULL,
      description  text NOT NULL,
      pools        text[] NOT NULL,
      sealed       text NOT NULL,
      value_set_at timestamptz NOT NULL,
      created_by   text NOT NULL,
      created_at   timestamptz NOT NULL,
      updated_at   timestamptz NOT NULL,
      version      integer NOT NULL,
      CONSTRAINT secrets_name UNIQUE (tenant_id, name)
    );
    CREATE INDEX secrets_tenant ON secrets (tenant_id, id DESC);
    CREATE INDEX secrets_names ON secrets (name, id);

    CREATE TRIGGER quota_secrets_insert_added AFTER INSERT ON secrets FOR EACH ROW
      WHEN (NEW.tenant_id <> 'platform') EXECUTE FUNCTION count_quota_row('secrets', 'added');
    CREATE TRIGGER quota_secrets_delete_removed AFTER DELETE ON secrets FOR EACH ROW
      WHEN (OLD.tenant_id <> 'platform') EXECUTE FUNCTION count_quota_row('secrets', 'removed');
  `));

export const down = async (knex: Knex): Promise<void> => {
  await knex.raw('DROP TABLE secrets');
  await knex.raw(`DELETE FROM quota_usage WHERE quota = 'secrets'`);
};
