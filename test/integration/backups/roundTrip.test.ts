import { afterAll, beforeAll, expect, test } from '@jest/globals';
import type { JobRecord } from '../../../api/jobs/schemas.ts';
import { startApp, type TestApp } from '../../support/app.ts';
import {
  createArchiveFolder,
  backupCreator,
  restorer,
  restoreValidator,
  dumpTables,
  HISTORY_TABLES,
  STATE_TABLES,
} from '../../support/backups.ts';
import { propertyRuns } from '../../support/effort.ts';
import { seedEstate, seededRandom, mutateRandomly } from '../../support/estate.ts';
import { admin } from '../../support/users.ts';

let archives: Awaited<ReturnType<typeof createArchiveFolder>>;
let app: TestApp;
beforeAll(async () => {
  archives = await createArchiveFolder();
  app = await startApp(archives.env);
  await seedEstate(app);
});
afterAll(async () => {
  await app.stop();
  await archives.remove();
});

/** One round for each engine by default. */
const RUNS = propertyRuns(2);
const createBackup = backupCreator(() => admin(app));
const validate = restoreValidator(() => admin(app));
const restore = restorer(() => admin(app));

/** The rows of all state tables. Deleted webhooks and schedules remain as rows and are omitted. */
const dumpState = async () => ({
  ...(await dumpTables(
    app.databaseUrl,
    STATE_TABLES.filter((name) => name !== 'webhooks' && name !== 'schedules'),
  )),
  ...(await dumpTables(app.databaseUrl, ['webhooks', 'schedules'], 't.deleted_at IS NULL')),
  ends: await app.deps.db('cable_ends').orderBy('interface_id'),
  blocks: await app.deps.db('used_blocks').orderBy(['space_key', 'block']),
});

test.each(
  Array.from({ length: RUNS }, (_, run): [number, string] => [
    run,
    run % 2 === 0 ? 'snapshot' : 'portable',
  ]),
)('round trip %d (%s): a restore undoes random changes of random records', async (run, engine) => {
  const random = seededRandom(1_000 + run);
  expect(await mutateRandomly(app.databaseUrl, random, 150)).toBeGreaterThan(30);
  const backup = await createBackup({ engine, label: `run ${run}` });
  const [before, history] = [await dumpState(), await dumpTables(app.databaseUrl, HISTORY_TABLES)];
  const changed = await mutateRandomly(app.databaseUrl, random, 400);
  expect(changed).toBeGreaterThan(80);
  const validation = await validate({ backupId: backup.id });
  expect([validation.errors, validation.valid]).toEqual([[], true]);
  const restored = await restore({ backupId: backup.id, planHash: validation.planHash });
  const after = await dumpState();
  for (const name of Object.keys(before) as (keyof typeof before)[])
    expect([name, after[name]]).toEqual([name, before[name]]);
  // History is complete.
  const now = await dumpTables(app.databaseUrl, HISTORY_TABLES);
  for (const name of HISTORY_TABLES.filter(
    (each) =>
      each !== 'jobs' && each !== 'audit_heads' && each !== 'audit_entries' && each !== 'events',
  ))
    expect(now[name]).toEqual(expect.arrayContaining(history[name] ?? []));
  const { created, changed: rows, deleted } = validation.preview.counts;
  expect(restored.outcome).toMatchObject({ created, changed: rows, deleted });
  expect(created + rows + deleted).toBeGreaterThan(20);
  // Another restore would change nothing.
  const again = await validate({ backupId: backup.id });
  expect(again.preview.counts).toMatchObject({ created: 0, changed: 0, deleted: 0 });
});

test.each(['snapshot', 'portable'])(
  'a test restore (%s) succeeds in whatever order PostgreSQL returns the loaded rows',
  async (engine) => {
    // COPY puts short rows into gaps that long ones have left in earlier pages.
    await app.deps.db.raw(
      `INSERT INTO sites (id, tenant_id, name, status, description)
       SELECT 'sit_' || lpad(n::text, 26, '0'), 'platform', 'long ' || n, 'active', repeat(md5(n::text), (n * 7919) % 60)
       FROM generate_series(1, 2000) AS n ON CONFLICT DO NOTHING`,
    );
    const { id: backupId } = await createBackup({ engine, label: `order ${engine}` });
    const tested = await admin(app)
      .post<JobRecord>(
        '/api/jobs',
        { type: 'backup.verify', payload: { backupId } },
        { prefer: 'wait=50' },
      )
      .expect(201);
    expect([tested.status, tested.error]).toEqual(['succeeded', null]);
  },
);
