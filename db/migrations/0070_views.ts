import type { Knex } from 'knex';

/**
 * Named views of the lists of the console. `owner` is the key of their author.
 */
export const up = async (knex: Knex): Promise<void> =>
  void (await knex.raw(`
    CREATE TABLE views (
      id         text COLLATE "C" PRIMARY KEY,
      tenant_id  text COLLATE "C" NOT NULL,
      list       text COLLATE "C" NOT NULL,
      name       text COLLATE "C" NOT NULL,
      search     json NOT NULL,
      shared     boolean NOT NULL,
      owner      text COLLATE "C" NOT NULL,
      created_by text NOT NULL,
      created_at timestamptz NOT NULL,
      updated_at timestamptz NOT NULL,
      version    integer NOT NULL
    );
    CREATE INDEX views_tenant ON views (tenant_id, id DESC);
    CREATE INDEX views_names ON views (tenant_id, list, name, id);
    CREATE INDEX views_owner ON views (tenant_id, owner);

    CREATE TABLE view_defaults (
      tenant_id text COLLATE "C" NOT NULL,
      owner     text COLLATE "C" NOT NULL,
      list      text COLLATE "C" NOT NULL,
      view_id   text COLLATE "C" NOT NULL,
      PRIMARY KEY (tenant_id, owner, list)
    );
    CREATE INDEX view_defaults_view ON view_defaults (view_id);
  `));

export const down = async (knex: Knex): Promise<void> =>
  void (await knex.raw('DROP TABLE view_defaults, views'));
