import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { startApp, type TestApp } from '../support/app.ts';
import { archiveFolder, backUp, dump, HISTORY, STATE } from '../support/backups.ts';
import { furnish, seeded, shake } from '../support/estate.ts';
import { admin } from '../support/users.ts';

let archives: Awaited<ReturnType<typeof archiveFolder>>;
let app: TestApp;
beforeAll(async () => {
  archives = await archiveFolder();
  app = await startApp(archives.env);
  await furnish(app);
});
afterAll(async () => {
  await app.stop();
  await archives.remove();
});

const RUNS = Number(process.env.BACKUP_RUNS ?? 6);
const take = backUp(() => admin(app));

/** What is deleted by marking it stays as a row; the others are there as they were. */
const there = async () => ({
  ...(await dump(
    app.databaseUrl,
    STATE.filter((name) => name !== 'webhooks' && name !== 'schedules'),
  )),
  ...(await dump(app.databaseUrl, ['webhooks', 'schedules'], 't.deleted_at IS NULL')),
  ends: await app.deps.db('cable_ends').orderBy('interface_id'),
});

test.each(
  Array.from({ length: RUNS }, (_, run): [number, string] => [
    run,
    run % 2 === 0 ? 'snapshot' : 'portable',
  ]),
)(
  'round trip %d (%s): random records, a backup, random changes, a restore: every row is what it was',
  async (run, engine) => {
    const random = seeded(1_000 + run);
    expect(await shake(app.databaseUrl, random, 150)).toBeGreaterThan(30);
    const backup = await take({ engine, label: `run ${run}` });
    const [before, history] = [await there(), await dump(app.databaseUrl, HISTORY)];
    const changed = await shake(app.databaseUrl, random, 400);
    expect(changed).toBeGreaterThan(80);
    const look = await admin(app).post('/api/backup/restore/validate', { backupId: backup.id });
    expect([look.status, look.body.errors, look.body.valid]).toEqual([200, [], true]);
    const restored = await admin(app).post(
      '/api/backup/restore',
      { backupId: backup.id, planHash: look.body.planHash, safetyBackup: false },
      { prefer: 'wait=50' },
    );
    expect([restored.status, restored.body.status, restored.body.error]).toEqual([
      202,
      'succeeded',
      null,
    ]);
    const after = await there();
    for (const name of Object.keys(before) as (keyof typeof before)[])
      expect([name, after[name]]).toEqual([name, before[name]]);
    // What has happened is still there, all of it.
    const now = await dump(app.databaseUrl, HISTORY);
    for (const name of HISTORY.filter(
      (each) =>
        each !== 'jobs' && each !== 'audit_heads' && each !== 'audit_entries' && each !== 'events',
    ))
      expect(now[name]).toEqual(expect.arrayContaining(history[name] ?? []));
    const { created, changed: rows, deleted } = look.body.preview.counts;
    expect(restored.body.outcome).toMatchObject({ created, changed: rows, deleted });
    expect(Number(created) + Number(rows) + Number(deleted)).toBeGreaterThan(20);
    // Nothing is left to be done.
    const again = await admin(app).post('/api/backup/restore/validate', { backupId: backup.id });
    expect(again.body.preview.counts).toMatchObject({ created: 0, changed: 0, deleted: 0 });
  },
);
