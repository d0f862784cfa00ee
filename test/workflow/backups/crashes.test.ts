import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import pg from 'pg';
import type { BackupRecord } from '../../../api/backups/schemas.ts';
import type { JobRecord } from '../../../api/jobs/schemas.ts';
import { assertDefined } from '../../../domain/shared/assert.ts';
import { startApp, type TestApp } from '../../support/app.ts';
import { createArchiveFolder, dumpTables, STATE_TABLES } from '../../support/backups.ts';
import type { TestClient } from '../../support/client.ts';
import { killRounds } from '../../support/effort.ts';
import { seedEstate } from '../../support/estate.ts';
import { eventually } from '../../support/eventually.ts';
import { startCrashingWorkers } from '../../support/crashingWorkers.ts';
import { admin } from '../../support/users.ts';
import { replaceableWorker } from '../../support/replaceableWorker.ts';

/** The API runs in this process, the worker in a process that the tests kill and replace. */
let archives: Awaited<ReturnType<typeof createArchiveFolder>>;
let api: TestApp;
let root: TestClient;
const worker = replaceableWorker(() => ({ ...api.env, HOLDFAST_ROLE: 'worker' }));
beforeAll(async () => {
  archives = await createArchiveFolder();
  api = await startApp({ ...archives.env, HOLDFAST_ROLE: 'api' });
  root = admin(api);
  await worker.start();
  await seedEstate(api);
});
afterAll(async () => {
  await worker.stop();
  await api.stop();
  await archives.remove();
});

/** Holds the locks of a statement until the returned function is called. */
async function holdLock(sql: string) {
  const client = new pg.Client({ connectionString: api.databaseUrl });
  await client.connect();
  await client.query('BEGIN');
  await client.query(sql);
  return async () => {
    await client.query('ROLLBACK');
    await client.end();
  };
}

/** True when a connection waits for a lock. */
const isLockContended = async () =>
  (
    await api.deps.db.raw(
      `SELECT count(*) AS n FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database()`,
    )
  ).rows[0].n > 0;

const backupColumn = (id: string, name: string) =>
  api.deps
    .db('backups')
    .where({ id })
    .first()
    .then((row) => row?.[name]);
const startBackup = async (request: object = {}) => {
  const backup = await root.post<BackupRecord>('/api/backup/create', request).expect(201);
  return { ...backup, jobId: assertDefined(backup.jobId, 'backup.jobId') };
};
const readJob = (id: string) => root.get<JobRecord>(`/api/jobs/${id}`).expect(200);
const waitForBackup = (id: string) =>
  eventually(
    () => backupColumn(id, 'status'),
    (status) => status === 'completed' || status === 'failed',
    { withinMs: 60_000 },
  );
const waitForJob = (id: string) =>
  eventually(
    () => readJob(id),
    ({ status }) => ['succeeded', 'failed', 'cancelled'].includes(status),
    { withinMs: 150_000 },
  );

/** Every archive has a record, every record an archive, and no staging schema is left. */
async function assertConsistent() {
  const files = await archives.files();
  expect(files).toEqual(
    (await api.deps.db('backups').where({ status: 'completed' }).pluck('archive')).sort(),
  );
  expect(
    (await api.deps.db.raw(`SELECT nspname FROM pg_namespace WHERE nspname LIKE 'staging%'`)).rows,
  ).toEqual([]);
}

/** Kills the worker while it waits for a lock, then releases the lock and starts another worker. */
async function killWhileWaiting(release: () => Promise<void>): Promise<void> {
  await eventually(isLockContended, (waits) => waits);
  await worker.kill();
  await release();
  await worker.start();
}

describe('after a worker is killed', () => {
  test('during the snapshot, another worker makes the backup', async () => {
    const release = await holdLock('LOCK TABLE ip_addresses IN ACCESS EXCLUSIVE MODE');
    const backup = await startBackup({ label: 'snapshot' });
    await eventually(
      () => archives.files(),
      (files) => files.some((file) => file.includes('.part-')),
    );
    await killWhileWaiting(release);
    expect(await waitForBackup(backup.id)).toBe('completed');
    expect((await waitForJob(backup.jobId)).status).toBe('succeeded');
    await assertConsistent();
  }, 120_000);

  test.each([
    [
      'after the upload, before it is recorded',
      'pending',
      (value: unknown) => Boolean((value as { upload: object | null } | null)?.upload),
    ],
    [
      'after the verification, before it is recorded',
      'size_bytes',
      (value: unknown) => value !== null,
    ],
    ['before the completion', 'verified_at', (value: unknown) => value !== null],
  ])(
    '%s, there is one archive for one record',
    async (_, name, isThere) => {
      await worker.start();
      const backup = await startBackup({ label: name });
      await eventually(() => backupColumn(backup.id, name), isThere);
      const release = await holdLock(`SELECT FROM backups WHERE id = '${backup.id}' FOR UPDATE`);
      if (!['completed', 'failed'].includes(await backupColumn(backup.id, 'status')))
        await killWhileWaiting(release);
      else await release();
      expect(await waitForBackup(backup.id)).toBe('completed');
      await waitForJob(backup.jobId);
      await assertConsistent();
    },
    120_000,
  );

  test('between removing an archive and recording it, the backup is deleted once', async () => {
    await worker.start();
    const backup = await startBackup({ label: 'removed' });
    await waitForBackup(backup.id);
    await waitForJob(backup.jobId);
    await worker.kill();
    await root.delete(`/api/backup/${backup.id}`).expect(204);
    const release = await holdLock(`SELECT FROM backups WHERE id = '${backup.id}' FOR UPDATE`);
    await worker.start();
    await eventually(
      () => archives.files(),
      (files) => !files.includes(backup.archive),
    );
    await killWhileWaiting(release);
    await eventually(
      () => backupColumn(backup.id, 'status'),
      (status) => status === 'deleted',
      { withinMs: 30_000 },
    );
    expect(
      await api.deps.db('events').where({ type: 'backup.deleted', subject_id: backup.id }),
    ).toHaveLength(1);
    await assertConsistent();
  }, 120_000);

  test.each([
    ['loading the archive', 'LOCK TABLE cables IN ACCESS EXCLUSIVE MODE', null],
    ['comparing', 'LOCK TABLE cables IN ACCESS EXCLUSIVE MODE', 'comparing'],
    ['applying the restore', 'LOCK TABLE sites IN ROW EXCLUSIVE MODE', null],
  ])(
    'while %s, the restore is applied once',
    async (_, lock, message) => {
      await worker.start();
      const backup = await startBackup({ label: 'restore' });
      await waitForBackup(backup.id);
      await waitForJob(backup.jobId);
      const before = await dumpTables(api.databaseUrl, STATE_TABLES);
      await api.deps.db('sites').update({ description: 'changed' });
      await api.deps.db('cables').del();
      let release = message === null ? await holdLock(lock) : () => Promise.resolve();
      const job = await root
        .post<JobRecord>('/api/jobs', {
          type: 'backup.restore',
          payload: { backupId: backup.id, preRestoreBackup: false },
        })
        .expect(201);
      if (message !== null) {
        await eventually(
          async () =>
            (await readJob(job.id)).logs.some((line) => line.message.includes('rows are loaded')),
          (loaded) => loaded,
        );
        release = await holdLock(lock);
      }
      if ((await readJob(job.id)).status === 'succeeded') await release();
      else await killWhileWaiting(release);
      expect(await waitForJob(job.id)).toMatchObject({ status: 'succeeded', error: null });
      expect(await dumpTables(api.databaseUrl, STATE_TABLES)).toEqual(before);
      expect(
        await api.deps.db('events').where({ type: 'restore.completed', subject_id: backup.id }),
      ).toHaveLength(1);
      await assertConsistent();
    },
    120_000,
  );
});

test('backups, test restores, restores and deletions end while workers keep crashing', async () => {
  await worker.kill();
  const workers = await startCrashingWorkers(api);
  const crash = () => workers.crash(2 * killRounds(), 1_500);
  let crashes = crash();
  const backups = await Promise.all(
    Array.from({ length: 5 * killRounds() }, (_, i) =>
      startBackup({ label: `many ${i}`, engine: i % 2 === 0 ? 'snapshot' : 'portable' }),
    ),
  );
  for (const { id } of backups) await waitForBackup(id);
  await crashes;
  const completed: string[] = await api.deps
    .db('backups')
    .where({ status: 'completed' })
    .whereIn(
      'id',
      backups.map(({ id }) => id),
    )
    .pluck('id');
  expect(completed.length).toBeGreaterThan(2);
  crashes = crash();
  const jobs = await Promise.all(
    completed.flatMap((backupId) =>
      ['backup.verify', 'backup.restore'].map(async (type) => {
        const payload = {
          backupId,
          ...(type === 'backup.restore' && { preRestoreBackup: false }),
        };
        return (await root.post<JobRecord>('/api/jobs', { type, payload }).expect(201)).id;
      }),
    ),
  );
  for (const id of jobs) await waitForJob(id);
  await crashes;
  crashes = crash();
  await Promise.all(completed.slice(0, 2).map((id) => root.delete(`/api/backup/${id}`)));
  await eventually(
    () => api.deps.db('backups').where({ status: 'deleting' }),
    (left) => left.length === 0,
    { withinMs: 60_000 },
  );
  await crashes;
  for (const { jobId } of backups) await waitForJob(jobId);
  // The reconciler removes what the killed workers could not.
  await eventually(
    async () => {
      await api.deps.db('backups').update({ check_at: new Date(0) });
      await api.deps.backups.reconcile(new AbortController().signal);
      const { rows } = await api.deps.db.raw<{ rows: unknown[] }>(
        `SELECT nspname FROM pg_namespace WHERE nspname LIKE 'staging%'`,
      );
      return (
        rows.length +
        Number((await api.deps.db('backups').whereNotNull('pending').count({ n: '*' }))[0]?.n)
      );
    },
    (left) => left === 0,
    { withinMs: 30_000 },
  );
  await assertConsistent();
}, 300_000);
