import type { Knex } from 'knex';

/**
 * The processes that run now. All need some settings alike, which they compare by digest, and no request of a
 * user may reach the endpoints of any of them. A row that is old does not count.
 */
export const up = async (knex: Knex): Promise<void> =>
  void (await knex.raw(`
    CREATE TABLE processes (
      id        text COLLATE "C" PRIMARY KEY,
      instance  text NOT NULL,
      machine   text NOT NULL,
      settings  jsonb NOT NULL,
      endpoints jsonb NOT NULL,
      seen_at   timestamptz NOT NULL
    )`));

export const down = async (knex: Knex): Promise<void> =>
  void (await knex.raw('DROP TABLE processes'));
