import { describe, expect, test } from '@jest/globals';
import { checkMigration } from '../../../dev/migrations/check.ts';

const RELEASED = '0065_plans_of_growing_tables';

/** The findings about a migration with this `up`. */
const check = (up: string, rest = '') =>
  checkMigration(
    '0099_next.ts',
    `export async function up(knex) { await knex.raw(\`${up}\`); }
     export async function down(knex) { await knex.raw('DROP TABLE jobs'); }
     ${rest}`,
    RELEASED,
  );

describe('what an older process goes on with', () => {
  test.each([
    'CREATE TABLE notes (id text PRIMARY KEY, at timestamptz NOT NULL); CREATE UNIQUE INDEX ON notes (at)',
    'ALTER TABLE jobs ADD COLUMN note text, ADD weight numeric(4, 2) NOT NULL DEFAULT 0',
    "ALTER TABLE jobs ADD at timestamptz NOT NULL DEFAULT now(); COMMENT ON COLUMN jobs.at IS 'a; DROP TABLE b'",
    'ALTER TABLE jobs ADD CONSTRAINT jobs_note CHECK (note IS NOT NULL) NOT VALID',
    'ALTER TABLE jobs VALIDATE CONSTRAINT jobs_note',
    'ALTER TABLE jobs DROP CONSTRAINT jobs_lane, ADD CONSTRAINT jobs_lane CHECK (a IN (1, 2)) NOT VALID',
    'ALTER TABLE jobs ALTER note DROP NOT NULL, ALTER note SET DEFAULT 1',
    'CREATE INDEX pools_note ON pools (description); UPDATE pools SET description = name',
    'CREATE OR REPLACE FUNCTION f() RETURNS void LANGUAGE sql AS $$ UPDATE jobs SET a = 1; DROP TABLE b $$',
    'DROP TRIGGER t ON jobs; CREATE TRIGGER t AFTER UPDATE ON jobs EXECUTE FUNCTION f()',
    'INSERT INTO purge_state (id) VALUES (1) ON CONFLICT DO UPDATE SET id = 1 -- DELETE FROM jobs',
    'SELECT 1 FROM jobs FOR UPDATE OF jobs',
  ])('%s', (sql) => {
    expect(check(sql)).toEqual([]);
  });
});

describe('what an older or a busy process would suffer from', () => {
  test.each([
    ['ALTER TABLE jobs DROP COLUMN note', 'drops a column'],
    ['ALTER TABLE jobs ADD a text, DROP note', 'drops a column'],
    ['DROP TABLE IF EXISTS notes', 'drops something'],
    ['DROP INDEX jobs_slots', 'drops something'],
    ['DROP TRIGGER t ON jobs', 'drops something'],
    ['ALTER TABLE jobs RENAME note TO text', 'renames something'],
    ['ALTER INDEX a RENAME TO b', 'renames something'],
    ['ALTER TABLE jobs ADD a text NOT NULL', 'NOT NULL without a default'],
    ['ALTER TABLE jobs ADD a uuid DEFAULT gen_random_uuid()', 'whole table again'],
    ['ALTER TABLE jobs ADD a text GENERATED ALWAYS AS (b) STORED', 'whole table again'],
    ['ALTER TABLE jobs ADD a bigserial', 'whole table again'],
    ['ALTER TABLE jobs ADD a text UNIQUE', 'with an index'],
    ['ALTER TABLE jobs ADD a text REFERENCES pools', 'whole table is read'],
    ['ALTER TABLE jobs ADD CONSTRAINT a CHECK (b > 0)', 'whole table is read'],
    [
      'ALTER TABLE jobs ADD CONSTRAINT a CHECK (b > 0) NOT VALID; ALTER TABLE jobs VALIDATE CONSTRAINT a',
      'in the next migration',
    ],
    ['ALTER TABLE pools ADD UNIQUE (description)', 'unique constraint'],
    ['ALTER TABLE jobs ALTER COLUMN a TYPE bigint', 'changes the type'],
    ['ALTER TABLE jobs ALTER a SET NOT NULL', 'NOT NULL'],
    ['ALTER TABLE jobs ALTER a DROP DEFAULT', 'drops a default'],
    ['ALTER TABLE jobs DROP CONSTRAINT jobs_pkey, ADD PRIMARY KEY (id, a)', 'drops a constraint'],
    ['ALTER TABLE jobs SET UNLOGGED', 'whole table'],
    ['ALTER TABLE job_logs DETACH PARTITION p', 'partitions'],
    ['CREATE INDEX ON jobs (a)', 'use createIndexOnline'],
    ['CREATE INDEX CONCURRENTLY a ON jobs (a)', 'use createIndexOnline'],
    ['CREATE UNIQUE INDEX ON pools (a)', 'unique index'],
    ['UPDATE jobs SET a = 1', 'in batches'],
    ['WITH old AS (DELETE FROM events RETURNING id) SELECT 1', 'in batches'],
    ['DO $$ BEGIN UPDATE jobs SET a = 1; END $$', 'in batches'],
    ["DO $$ BEGIN EXECUTE format('DROP TABLE %s', 'a'); END $$", 'cannot read'],
    ['TRUNCATE events', 'whole table'],
    ['LOCK TABLE jobs', 'whole table'],
    ['/* as\nbefore */ create index on ${table} (a)', 'use createIndexOnline'],
  ])('%s', (sql, finding) => {
    expect(check(sql)).toEqual([expect.stringContaining(finding)]);
  });

  test('in a constant or a function that is used', () => {
    const text = (use: string) => `
      const INDEXES = { a: 'CREATE INDEX a ON jobs (b)' };
      const make = (knex) => knex.raw(INDEXES.a);
      export const up = async (knex) => { ${use} };`;
    expect(checkMigration('0099_next.ts', text('await make(knex);'), RELEASED)).toHaveLength(1);
    expect(checkMigration('0099_next.ts', text(''), RELEASED)).toEqual([]);
    expect(
      checkMigration('0099_next.ts', text("await knex('jobs').update({ a: 1 });"), RELEASED),
    ).toEqual([expect.stringContaining('write SQL instead')]);
  });

  test('an index that is built online needs a migration without a transaction, of its own', () => {
    const text = (sql: string, config: string) => `${config}
      export const up = async (knex) => { ${sql} await createIndexOnline(knex, 'a', 'jobs (b)'); };`;
    const config = 'export const config = { transaction: false };';
    const findings = (...args: Parameters<typeof text>) =>
      checkMigration('0099_next.ts', text(...args), RELEASED);
    expect(findings('', config)).toEqual([]);
    expect(findings('', '')).toEqual([expect.stringContaining('config.transaction')]);
    expect(findings("await knex.raw('CREATE TABLE a ()');", config)).toEqual([
      expect.stringContaining('without a transaction'),
    ]);
  });
});

describe('a contract step', () => {
  const contract = (needs: string, reason: string) =>
    check(
      'ALTER TABLE jobs DROP note',
      `export const contract = { needs: '${needs}', reason: '${reason}' };`,
    );

  test('may remove what the last release does not use, with a reason', () => {
    expect(contract('0064_modules_pool', 'nothing has read it since 0.1.0')).toEqual([]);
    expect(contract('0064_modules_pool', 'tidy')).toEqual(['is a contract step without a reason']);
  });

  test('may not need what the last release does not have', () => {
    expect(contract('0072_upgrades', 'nothing reads it any more')).toEqual([
      'needs 0072_upgrades, which the last release does not have: it may still be running',
    ]);
    expect(contract('0001_none', 'nothing reads it any more')).toEqual([
      'is a contract step that needs the unknown migration 0001_none',
    ]);
  });
});
