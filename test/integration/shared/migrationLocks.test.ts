import { afterEach, beforeEach, expect, test } from '@jest/globals';
import { createIndexOnline, dropIndexOnline } from '../../../db/core/createIndexOnline.ts';
import { openDatabase, type Knex } from '../../../db/core/knex.ts';
import {
  migrateDown,
  migrateUp,
  pendingMigrations,
  unknownMigrations,
} from '../../../db/core/migrate.ts';
import type { Migrations } from '../../../db/core/migration.ts';
import { planRevert, planRevertAll } from '../../../db/core/revertPlan.ts';
import { readSchemaFit } from '../../../db/core/schemaFit.ts';
import { MIGRATIONS } from '../../../db/migrations/index.ts';
import { createLog } from '../../../platform/log.ts';
import { startAppOn, type TestApp } from '../../support/app.ts';
import { createDatabase, type TestDatabase } from '../../support/database.ts';
import { eventually } from '../../support/eventually.ts';
import type { JobRecord } from '../../../api/jobs/schemas.ts';

const sql = (up: string, down: string) => ({
  up: async (knex: Knex) => void (await knex.raw(up)),
  down: async (knex: Knex) => void (await knex.raw(down)),
});

let database: TestDatabase;
let pools: Knex[];
beforeEach(async () => {
  database = await createDatabase();
  pools = [];
});
afterEach(async () => {
  await Promise.all(pools.map((pool) => pool.destroy()));
  await database.drop();
});

function open(): Knex {
  const log = createLog('silent', false);
  const pool = openDatabase({ url: database.url, poolSize: 3, statementTimeoutMs: 0, log });
  pools.push(pool);
  return pool;
}

/** A report such as `pg_dump`, which reads jobs until it is ended. */
async function startReader(): Promise<() => Promise<void>> {
  const reader = await open().transaction();
  await reader.raw('SELECT count(*) FROM jobs');
  return async () => void (await reader.rollback());
}

/** Migrations of a next version, and the lines that the migrator logs. */
function nextVersion(added: Migrations) {
  const lines: { msg: string; blockers?: string; migration?: string }[] = [];
  const log = createLog('info', false);
  const record = (...[fields, msg]: [object | string, string?]) =>
    void lines.push(typeof fields === 'string' ? { msg: fields } : { ...fields, msg: msg ?? '' });
  return {
    lines,
    options: {
      migrations: { ...MIGRATIONS, ...added },
      log: Object.assign(Object.create(log) as typeof log, { info: record, warn: record }),
    },
  };
}

const ADDS_COLUMN = {
  '9001_first': sql('CREATE TABLE added (id int)', 'DROP TABLE added'),
  '9002_column': sql('ALTER TABLE jobs ADD COLUMN extra text', 'ALTER TABLE jobs DROP extra'),
};

test('a transaction that stays open delays a migration, and no request', async () => {
  const app: TestApp = await startAppOn(database.url, { HOLDFAST_ROLE: 'api' }, { idle: true });
  try {
    const endReader = await startReader();
    const { options, lines } = nextVersion(ADDS_COLUMN);
    let isDone = false;
    const migrating = migrateUp(open(), options).then((names) => {
      isDone = true;
      return names;
    });
    const blocked = () => lines.filter(({ blockers }) => blockers !== undefined);
    // Requests in a series, until the migration has been held up several times.
    let slowestMs = 0;
    let requests = 0;
    await eventually(
      async () => {
        const startedAt = performance.now();
        await app.client
          .post<JobRecord>('/api/jobs', { type: 'core.echo', payload: {} })
          .expect(201);
        await app.client.get('/api/jobs').expect(200);
        slowestMs = Math.max(slowestMs, performance.now() - startedAt);
        requests += 1;
        return blocked().length;
      },
      (count) => count >= 3,
    );
    expect(isDone).toBe(false);
    // A statement would have waited for the reader, and failed after 15 s.
    expect(slowestMs).toBeLessThan(5_000);
    expect(requests).toBeGreaterThan(3);
    expect(blocked()[0]).toMatchObject({ migration: '9002_column' });
    expect(blocked()[0]?.blockers).toMatch(/^process \d+ \(user \S+, application holdfast\) has/);
    // The migration before it is done: each has a transaction of its own.
    expect(await pendingMigrations(open(), options.migrations)).toEqual(['9002_column']);
    await endReader();
    expect(await migrating).toEqual(['9001_first', '9002_column']);
  } finally {
    await app.stop();
  }
});

test('a migration fails after its time, says who was in the way, and has changed nothing', async () => {
  const endReader = await startReader();
  const { options } = nextVersion(ADDS_COLUMN);
  const migrating = migrateUp(open(), { ...options, waitMs: 300 });
  await expect(migrating).rejects.toThrow(/^The tables stayed locked, .*application holdfast/);
  await endReader();
  expect(await migrateUp(open(), options)).toEqual(['9002_column']);
});

test('an index is built while a second process waits for its turn to migrate', async () => {
  const secondWaits = Promise.withResolvers<undefined>();
  const { options, lines } = nextVersion({
    '9000_table': sql(
      'CREATE TABLE added (id int, name text); INSERT INTO added VALUES (1), (1)',
      'DROP TABLE added',
    ),
    '9001_index': {
      config: { transaction: false },
      async up(knex) {
        // Leaves an index that is not valid, as a build that was interrupted does.
        const build = 'CREATE UNIQUE INDEX CONCURRENTLY extra_index ON added (id)';
        await expect(knex.raw(build).then()).rejects.toThrow('could not create unique index');
        await secondWaits.promise;
        await createIndexOnline(knex, 'extra_index', 'added (name, id)');
        await createIndexOnline(knex, 'extra_index', 'added (name, id)');
      },
      down: (knex) => dropIndexOnline(knex, 'extra_index'),
    },
  });
  const first = migrateUp(open(), options);
  await eventually(
    () => lines.some(({ migration }) => migration === '9001_index'),
    (runs) => runs,
  );
  const second = nextVersion(options.migrations);
  const other = migrateUp(open(), second.options);
  await eventually(
    () => second.lines.some(({ msg }) => msg.includes('another process')),
    (waits) => waits,
  );
  secondWaits.resolve(undefined);
  expect(await Promise.all([first, other])).toEqual([['9000_table', '9001_index'], []]);
  const { rows } = await open().raw<{ rows: object[] }>(
    `SELECT indisvalid AS valid, pg_get_indexdef(indexrelid) AS definition
     FROM pg_index WHERE indexrelid = 'extra_index'::regclass`,
  );
  expect(rows).toEqual([
    { valid: true, definition: expect.stringContaining('(name, id)') as unknown },
  ]);
  expect(await migrateDown(open(), false, options)).toEqual(['9001_index']);
});

test('a version that does not know the newest migration neither migrates nor reverts', async () => {
  const { options } = nextVersion(ADDS_COLUMN);
  await migrateUp(open(), options);
  expect(await unknownMigrations(open())).toEqual(['9001_first', '9002_column']);
  // It can run on the schema, and has nothing to migrate.
  expect(await migrateUp(open())).toEqual([]);
  await expect(migrateDown(open())).rejects.toThrow('Migrate with the newer version');
});

test('a contract step refuses versions that do not know what it needs, until it is reverted', async () => {
  const contract = { needs: '9001_first', reason: 'nothing reads jobs.extra' };
  const removes = { ...sql('SELECT 1', 'SELECT 1'), contract };
  const { options } = nextVersion({ ...ADDS_COLUMN, '9003_contract': removes });
  await migrateUp(open(), options);
  const older = { ...MIGRATIONS, '9001_first': ADDS_COLUMN['9001_first'] };
  expect(await readSchemaFit(open(), older)).toEqual({ pending: [], refusedBy: undefined });
  const { refusedBy } = await readSchemaFit(open(), MIGRATIONS);
  expect(refusedBy).toEqual({ name: '9003_contract', ...contract });
  await migrateDown(open(), false, options);
  expect((await readSchemaFit(open(), MIGRATIONS)).refusedBy).toBeUndefined();
});

test('reverting says first what it loses, and changes nothing until that is accepted', async () => {
  const { options } = nextVersion({
    '9001_note': sql(
      `CREATE TABLE notes (id int);
       INSERT INTO notes VALUES (1), (2);
       ALTER TABLE notes ADD COLUMN seen boolean;`,
      'DROP TABLE notes',
    ),
    '9002_column': sql(
      `ALTER TABLE notes ADD COLUMN extra text; UPDATE notes SET extra = 'x' WHERE id = 1`,
      `DELETE FROM notes WHERE extra IS NULL; UPDATE notes SET seen = true; ALTER TABLE notes DROP extra`,
    ),
  });
  const db = open();
  await migrateUp(db, options);
  expect(await planRevert(db, options.migrations)).toEqual({
    migration: '9002_column',
    losses: [
      'the column notes.extra with 1 value',
      '1 row of notes',
      'the former values of 1 row of notes',
    ],
  });
  expect(await db('notes').orderBy('id').select('extra')).toEqual([
    { extra: 'x' },
    { extra: null },
  ]);
  await migrateDown(db, false, options);
  expect(await planRevert(db, options.migrations)).toEqual({
    migration: '9001_note',
    losses: ['the table notes with 1 row'],
  });
  expect(await planRevertAll(db)).toContain('the table notes with 1 row');
  await expect(planRevert(db)).rejects.toThrow('Migrate with the newer version');
});
